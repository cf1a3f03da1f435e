"""A whole tiny dataset: two releases of one module, from fetch to folders."""

import hashlib
import io
import json
import tarfile

import pytest

from pytest_otval.sources.cli import main
from pytest_otval.sources.files import SourceError
from pytest_otval.sources.release_source import ReleaseSource
from pytest_otval.workspace import Workspace

OLD = {
    "thing/core.py": "def half(x):\n    return x\n",
    "thing/gone.py": "",
    "thing/same.py": "SAME = 1\n",
    "tests/test_core.py": "def test_old():\n    pass\n",
    "README": "old",
}
NEW = {
    "thing/core.py": "def half(x):\n    return x / 2\n",
    "thing/added.py": "ADDED = 1\n",
    "thing/same.py": "SAME = 1\n",
    "tests/test_core.py": "from thing import core\n\n"
    "def test_half():\n    '''Half of two is @NAME@.'''\n    assert core.half(2) == 1\n",
    "README": "new",
}
TEMPLATE = {
    "task.toml.in": '[task]\nname = "x/@NAME@"\n',
    "instruction.md": "@FACTS@\n@CASES@\n",
    "Dockerfile": "FROM scratch\nCOPY app/ /app/\n",
    "test.sh": "#!/bin/bash\nrun @CONFIG@ @PYTHONPATH@@ARGUMENTS@\n",
    "grade.py": "",
    "solve.sh": "#!/bin/bash\n@REMOVE@\n",
}


def sdist(top, files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content.encode()))
    return buffer.getvalue()


CONTENTS = {
    "thing-1.tar.gz": sdist("thing-1", OLD),
    "thing-2.tar.gz": sdist("thing-2", NEW),
    "dep-1-py3-none-any.whl": b"a wheel",
}


class Shelf:
    def __init__(self):
        self.asked = []

    def download(self, archive, target):
        self.asked.append(archive.file)
        if archive.file not in CONTENTS:
            raise SourceError(f"{archive.file}: the package index does not have it")
        target.write_bytes(CONTENTS[archive.file])


def sha(content):
    return hashlib.sha256(content).hexdigest()


def write_dataset(folder, **changes):
    (folder / "ids").mkdir(parents=True)
    (folder / "template").mkdir()
    for name, content in TEMPLATE.items():
        (folder / "template" / name).write_text(content)
    (folder / "dataset.toml").write_text("[dataset]\n")
    (folder / "ids/thing-2.txt").write_text("tests/test_core.py::test_kept\n")
    files = {name: f'file = "{name}", sha256 = "{sha(content)}"' for name, content in CONTENTS.items()}
    values = {"code": '["thing"]', "suite": "[]", **changes}
    (folder / "releases.toml").write_text(
        f"""
[wheels]
"dep==1" = {{ {files["dep-1-py3-none-any.whl"]} }}
[[pair]]
package = "thing"
licence = "MIT"
ci = true
code = {values["code"]}
tests = ["tests"]
suite = {values["suite"]}
old = {{ version = "1", {files["thing-1.tar.gz"]} }}
new = {{ version = "2", {files["thing-2.tar.gz"]} }}
wheels = ["dep==1"]
fail_to_pass = ["tests/test_core.py::test_half"]
n_pass_to_pass = 1
pass_to_pass_sha256 = "{sha(b"tests/test_core.py::test_kept")}"
"""
    )


@pytest.fixture
def dataset(tmp_path):
    write_dataset(tmp_path / "things")
    return tmp_path / "things"


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "workspace").mkdir()
    return Workspace(tmp_path / "workspace")


@pytest.fixture
def shelf():
    return Shelf()


@pytest.fixture
def run(dataset, workspace, shelf, capsys):
    def run(*argv):
        status = main(lambda: ReleaseSource(dataset, workspace, shelf), argv)
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    return run


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_from_nothing_to_a_prepared_dataset(run, workspace):
    assert run("status") == (1, "thing-2: not fetched, not prepared\nthings: status: 0 of 1 done\n")
    assert run("fetch") == (0, "thing-2: fetched 3 files\nthings: fetch: 1 of 1 done\n")
    assert run("status")[1].startswith("thing-2: fetched, not prepared\n")
    assert run("prepare") == (0, "thing-2: prepared, 1 to fix, 1 to keep\nthings: prepare: 1 of 1 done\n")
    assert run("status") == (0, "thing-2: prepared\nthings: status: 1 of 1 done\n")
    assert (workspace.datasets / "things/dataset.toml").read_text() == "[dataset]\n"


def test_the_task(run, workspace):
    run("fetch")
    run("prepare")
    task = contents(workspace.datasets / "things/tasks/thing-2")
    assert json.loads(task.pop("tests/ids.json")) == {
        "fail_to_pass": ["tests/test_core.py::test_half"],
        "pass_to_pass": ["tests/test_core.py::test_kept"],
    }
    assert {path: content.decode() for path, content in task.items()} == {
        "task.toml": '[task]\nname = "x/thing-2"\n',
        "instruction.md": "- `test_half` in `tests/test_core.py`: Half of two is @NAME@.\n  - uses `thing.core.half`\n",
        "environment/Dockerfile": TEMPLATE["Dockerfile"],
        "environment/app/thing/core.py": OLD["thing/core.py"],
        "environment/app/thing/gone.py": "",
        "environment/app/thing/same.py": OLD["thing/same.py"],
        "environment/app/README": "old",
        "environment/wheels/dep-1-py3-none-any.whl": "a wheel",
        "solution/solve.sh": "#!/bin/bash\nrm -f '/app/thing/gone.py'\n",
        "solution/files/thing/core.py": NEW["thing/core.py"],
        "solution/files/thing/added.py": NEW["thing/added.py"],
        "tests/test.sh": "#!/bin/bash\nrun pytest.ini tests\n",
        "tests/grade.py": "\n",
        "tests/suite/pytest.ini": "[pytest]\n",
        "tests/suite/tests/test_core.py": NEW["tests/test_core.py"],
    }


def test_prepared_twice_is_the_same_to_the_byte(run, dataset, workspace, tmp_path, shelf):
    run("fetch")
    run("prepare")
    other = Workspace(tmp_path / "other")
    for command in ("fetch", "prepare"):
        assert main(lambda: ReleaseSource(dataset, other, shelf), [command]) == 0
    assert contents(workspace.datasets / "things") == contents(other.datasets / "things")


def test_what_is_up_to_date_is_left_alone(run, workspace, shelf):
    run("fetch")
    run("prepare")
    before = (workspace.datasets / "things/tasks/thing-2").stat().st_ino
    assert "thing-2: prepared before" in run("prepare")[1]
    assert (workspace.datasets / "things/tasks/thing-2").stat().st_ino == before
    assert run("fetch")[1].startswith("thing-2: fetched before")
    assert len(shelf.asked) == 3


def test_a_changed_template_makes_the_task_anew(run, dataset, workspace):
    run("fetch")
    run("prepare")
    (dataset / "template/Dockerfile").write_text("FROM debian\n")
    assert run("status")[0] == 1
    assert "thing-2: prepared, " in run("prepare")[1]
    assert (workspace.datasets / "things/tasks/thing-2/environment/Dockerfile").read_text() == "FROM debian\n"


def test_a_task_that_is_gone_is_not_prepared(run, workspace):
    run("fetch")
    run("prepare")
    (workspace.datasets / "things/tasks/thing-2").rename(workspace.root / "taken")
    assert run("status")[0] == 1
    assert run("prepare")[0] == 0
    assert run("status")[0] == 0


def test_a_task_of_no_pair_is_removed(run, workspace):
    run("fetch")
    stale = workspace.datasets / "things/tasks/thing-0"
    stale.mkdir(parents=True)
    run("prepare")
    assert [path.name for path in stale.parent.iterdir()] == ["thing-2"]


def test_runtimes_that_the_dataset_named_stay_named(run, dataset, workspace):
    run("fetch"), run("prepare")
    toml = workspace.datasets / "things" / "dataset.toml"
    line = f'tools-{"1" * 12} = "sha256:{"a" * 64}"'
    toml.write_text(f"[dataset]\n[otval.runtimes]\n{line}\n")
    (dataset / "dataset.toml").write_text('[dataset]\nname = "org/new" # new\n')
    assert run("prepare")[0] == 0
    assert 'name = "org/new" # new' in toml.read_text() and line in toml.read_text()
    (dataset / "dataset.toml").write_text("otval = 1\n")
    status, said = run("prepare")
    assert status == 4 and "cannot take a table [otval.runtimes]" in said
    assert line in toml.read_text()


def test_what_is_not_fetched_is_told_with_the_command(run, workspace):
    status, out = run("prepare")
    assert status == 1
    assert "thing-2: thing-1.tar.gz is not fetched: run `patch.py fetch --only thing-2`" in out
    assert not (workspace.datasets / "things/tasks").exists()


def test_a_failed_download_fails_its_entry(run, monkeypatch):
    monkeypatch.delitem(CONTENTS, "thing-2.tar.gz")
    status, out = run("fetch")
    assert status == 1
    assert "thing-2: thing-2.tar.gz: the package index does not have it\n" in out


def test_other_ids_than_the_pinned_are_refused(run, dataset):
    run("fetch")
    (dataset / "ids/thing-2.txt").write_text("tests/test_core.py::test_other\n")
    status, out = run("prepare")
    assert status == 1
    assert "ids/thing-2.txt: sha256 of the pass_to_pass ids is" in out


def test_missing_ids_fail_their_entry(run, dataset):
    run("fetch")
    run("prepare")
    (dataset / "ids/thing-2.txt").unlink()
    assert run("status")[0] == 1
    status, out = run("prepare")
    assert status == 1
    assert "make it with `patch.py ids`" in out


def test_a_suite_with_its_own_configuration_keeps_it(tmp_path, workspace, shelf, monkeypatch):
    monkeypatch.setitem(CONTENTS, "thing-2.tar.gz", sdist("thing-2", {**NEW, "pyproject.toml": "[x]\n"}))
    write_dataset(tmp_path / "own", suite='["pyproject.toml"]')
    for command in ("fetch", "prepare"):
        assert main(lambda: ReleaseSource(tmp_path / "own", workspace, shelf), [command]) == 0
    tests = contents(workspace.datasets / "own/tasks/thing-2/tests")
    assert "suite/pytest.ini" not in tests
    assert tests["suite/pyproject.toml"] == b"[x]\n"
    assert tests["test.sh"] == b"#!/bin/bash\nrun pyproject.toml tests\n"


def test_a_listed_path_that_no_release_has_is_told(tmp_path, workspace, shelf, capsys):
    write_dataset(tmp_path / "wrong", code='["thing", "lost"]')
    main(lambda: ReleaseSource(tmp_path / "wrong", workspace, shelf), ["fetch"])
    assert main(lambda: ReleaseSource(tmp_path / "wrong", workspace, shelf), ["prepare"]) == 1
    assert "thing-2: thing-1.tar.gz: has no lost: correct releases.toml" in capsys.readouterr().out


def test_selection(run):
    assert run("status", "--only", "thing-9") == (
        4,
        "error: things has no thing-9: `patch.py status` lists the names\n",
    )
    assert run("status", "--only", "thing-2", "--ci")[1].endswith("0 of 1 done\n")
    assert run("status", "--limit", "0") == (0, "things: status: 0 of 0 done\n")


def test_without_a_workspace_the_command_line_says_so(monkeypatch, dataset, capsys):
    monkeypatch.delenv("OT_WORKSPACE", raising=False)
    assert main(lambda: ReleaseSource(dataset, Workspace.from_environment()), ["status"]) == 4
    assert capsys.readouterr().err.startswith("error: OT_WORKSPACE is not set")
