"""The worked example of docs/examples/effect, in real containers: wrong patches are told, and what good ones gain."""

import shutil
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from pytest_otval.report.results import read_results
from pytest_otval.sources.dataset import PatchedDataset
from pytest_otval.workspace import Workspace
from selftests.conftest import REPOSITORY
from selftests.runtimes.conftest import verifier_runtime  # noqa: F401
from selftests.sources.test_patched_dataset import said

# ruff: noqa: F811 - fixtures
pytestmark = pytest.mark.integration

EXAMPLE = REPOSITORY / "docs" / "examples" / "effect"
NOOP = "::noop"
ATTACK = "pytest-replaced"


@pytest.fixture
def example(real, image, tmp_path, monkeypatch):
    """Return what makes the example's dataset by one of its scripts, in a workspace that shares images and runtimes."""
    workspace = tmp_path / "ws"
    for name in ("datasets", "runs"):
        (workspace / name).mkdir(parents=True)
    shared = real._workspace
    for name, folder in (("images", shared.images), ("runtimes", shared.runtimes), ("cache", shared.cache)):
        folder.mkdir(exist_ok=True)
        (workspace / name).symlink_to(folder)
    monkeypatch.setenv("OT_WORKSPACE", str(workspace))
    shutil.copytree(EXAMPLE, tmp_path / "effect")

    def make(script):
        path = tmp_path / "effect" / script
        spec = spec_from_file_location(f"example_{path.stem}", path)
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return PatchedDataset(str(path), module.PATCHES, Workspace(workspace))

    make.runs = workspace / "runs"
    make.scripts = tmp_path / "effect"
    return make


def regressions(lines):
    found = [line.split(":")[1].split() for line in lines if line.startswith("regressed: ")]
    return {(task, stage, " ".join(patches)) for task, stage, _, *patches in found}


def asked(run):
    """Return the tasks of a run whose noop was asked, not remembered."""
    return {
        line["id"].split("/")[3] for line in read_results(run).lines() if NOOP in line["id"] and not line["cached_from"]
    }


def test_wrong_patches_are_told_by_task_and_stage(example, capfd):
    status, out, _ = said(capfd, example("wrong.py"), "effect", "--stages", "static,build,noop", "-n", "1")
    assert status == 1
    assert regressions(out) == {
        ("total", "static", "strict-shell"),
        ("total", "noop", "strict-shell"),
        ("module", "build", "with-repository"),
        ("greeting", "static", "with-tool + generous"),
        ("greeting", "noop", "with-tool + generous"),
    }
    # One of them is repaired: nothing but its task is asked about again.
    script = example.scripts / "wrong.py"
    lost, kept = ('"echo 1 > /logs/verifier/reward.txt\\n"', '"echo 0 > /logs/verifier/reward.txt\\nset -o errexit\\n"')
    text = script.read_text().replace(lost, kept)
    assert text != script.read_text()
    script.write_text(text)
    known = set(example.runs.iterdir())
    status, out, _ = said(capfd, example("wrong.py"), "effect", "--stages", "noop", "-n", "1")
    assert regressions(out) == {("total", "noop", "strict-shell")}
    before, after, *_ = sorted(set(example.runs.iterdir()) - known)
    assert (asked(before), asked(after)) == (set(), {"greeting"})


def test_what_hardening_gains(example, capfd, monkeypatch, verifier_runtime):
    monkeypatch.setenv("PYTEST_ADDOPTS", f"--otval-attacks={ATTACK}")
    status, out, _ = said(capfd, example("patch.py"), "effect", "--stages", "noop,adversary", "-n", "1")
    assert status == 0
    counts = [line for line in out if line.startswith("| ") and " | 0 | 0 | 0 | 0 | 0 | 1 | 0 |" not in line][1:]
    assert counts == [
        "| hardened-tests | adversary | 1 | 0 | 0 | 0 | 0 | 0 | 0 |",
        "| reward-guard | noop | 1 | 0 | 0 | 0 | 0 | 0 | 0 |",
        "| patch | attack | paid before | paid now |",
        "| hardened-tests | pytest-replaced | 1 | 0 |",
    ]
