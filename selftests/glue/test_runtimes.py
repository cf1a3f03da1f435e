"""What a run does for the runtimes of its tasks before it asks: what an installation said is kept, faults are told."""

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.evidence.place import files
from pytest_otval.stages import saving
from selftests.glue.conftest import ids

pytest_plugins = ["pytester"]

ASKS = "#!/bin/bash\n. ot-runtime.sh\not_runtime mine || exit 1\n"
NAMED = f'[otval.runtimes]\n"mine-{"0" * 12}" = "sha256:{"a" * 64}"'


@pytest.fixture
def asking(project):
    """A project whose task asks for a runtime."""
    dataset = project.dataset(tasks={"a": {}}, otval=NAMED)
    for name in ("setup_files", "tests"):
        (dataset / "tasks" / "a" / name).mkdir()
    (dataset / "tasks" / "a" / "setup_files" / "setup.sh").write_text(ASKS)
    return project


def test_a_recipe_that_is_wrong_is_a_line_without_traceback(asking):
    folder = asking.root / "runtimes" / "mine"
    folder.mkdir(parents=True)
    (folder / "runtime.toml").write_text("x")
    (folder / "install.sh").touch()
    outcome = asking.run("datasets/demo", "-m", "oracle")
    line = asking.ledger()[ids("a")[2]]
    assert (line["class"], line["verdict"]) == ("runtime-missing", "error")
    assert line["headline"].startswith(f"{folder}/runtime.toml: cannot be read")
    assert "Traceback" not in "\n".join(outcome.lines)


@pytest.mark.parametrize("extra", [(), ("--otval-keep",), ("--otval-repeat=2",)], ids=" ".join)
@pytest.mark.parametrize("fails", [False, True])
def test_what_an_installation_said_is_kept(asking, monkeypatch, fails, extra):
    def save(machine, task, rootdir, in_place, log):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("installing\n")
        if fails:
            raise Conclusion("setup-failed", "x")
        return []

    monkeypatch.setattr(saving, "save_runtimes", save)
    asking.run("datasets/demo", "-m", "oracle", "--otval-save-runtimes", *extra)
    line, run = asking.ledger()[ids("a")[2]], asking.runs[-1]
    assert line["class"] == ("setup-failed" if fails else "expected")
    if fails or not any("repeat" in one for one in extra):
        assert dict(files(run, line["evidence"])) == {"runtimes.txt": b"installing\n"}
    else:
        assert list((run / "evidence").iterdir()) != [], "in the archive, beside those of the attempts"
