"""A whole tiny dataset: two releases of one module, from fetch to folders."""

import hashlib
import json

import pytest

from pytest_otval.sources.fetch import PackageIndex
from pytest_otval.sources.releases.dataset import ReleaseDataset
from pytest_otval.workspace import Workspace
from selftests.sources.releases.conftest import Shelf, sdist

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


TOML = '[dataset]\nname = "org/things"\n[otval]\nadapter = "releases"\n[otval.source]\nkind = "package-index"\n'


CONTENTS = {
    "thing-1.tar.gz": sdist("thing-1", OLD),
    "thing-2.tar.gz": sdist("thing-2", NEW),
    "dep-1-py3-none-any.whl": b"a wheel",
}


def sha(content):
    return hashlib.sha256(content).hexdigest()


def write_dataset(folder, **changes):
    (folder / "ids").mkdir(parents=True)
    (folder / "template").mkdir()
    for name, content in TEMPLATE.items():
        (folder / "template" / name).write_text(content)
    (folder / "dataset.toml").write_text(TOML)
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
def workspace(tmp_path):
    (tmp_path / "workspace").mkdir()
    return Workspace(tmp_path / "workspace")


@pytest.fixture
def shelf(monkeypatch):
    shelf = Shelf()
    shelf.files = dict(CONTENTS)
    monkeypatch.setattr(PackageIndex, "download", lambda index, *asked: shelf.download(*asked))
    return shelf


@pytest.fixture
def dataset(tmp_path):
    write_dataset(tmp_path / "things")
    return tmp_path / "things"


@pytest.fixture
def run(dataset, workspace, shelf, capsys):
    def run(*argv, folder=dataset, into=workspace):
        status = ReleaseDataset(str(folder / "patch.py"), workspace=into).main(argv)
        printed = capsys.readouterr()
        return status, (printed.out + printed.err).splitlines()

    return run


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


MADE = "things: 1 tasks, 0 refused, 0 errors"


def test_from_nothing_to_a_prepared_dataset(run, workspace):
    target = workspace.datasets / "things"
    assert run("status") == (0, ["source: not fetched", f"tasks: not prepared in {target}"])
    assert run("fetch") == (0, ["things: 3 files fetched"])
    assert run("fetch") == (0, ["things: is fetched"])
    assert run("prepare") == (0, [MADE])
    assert run("status") == (0, ["source: fetched", f"tasks: prepared in {target}"])
    assert (target / "dataset.toml").read_text() == TOML


def test_the_task(run, workspace):
    run("fetch")
    run("prepare", "--folders")
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


def test_prepared_twice_is_the_same_to_the_byte(run, workspace, tmp_path):
    run("fetch"), run("prepare")
    before = contents(workspace.datasets / "things")
    assert run("prepare") == (0, [MADE, "things: 0 of 1 parts were made anew"])
    assert contents(workspace.datasets / "things") == before
    (tmp_path / "other").mkdir()
    other = Workspace(tmp_path / "other")
    run("fetch", into=other), run("prepare", into=other)
    assert contents(other.datasets / "things") == before


def test_once_all_is_fetched_no_index_is_asked(run, shelf, monkeypatch):
    run("fetch")
    monkeypatch.setattr(PackageIndex, "download", None)
    assert run("fetch")[0] == run("prepare")[0] == 0
    assert len(shelf.asked) == 3


def test_a_changed_template_makes_the_task_anew(run, dataset, workspace):
    run("fetch"), run("prepare")
    (dataset / "template/Dockerfile").write_text("FROM debian\n")
    run("prepare", "--folders")
    assert (workspace.datasets / "things/tasks/thing-2/environment/Dockerfile").read_text() == "FROM debian\n"


def test_what_is_not_fetched_is_told_with_the_command(run, workspace):
    assert run("prepare") == (1, ["error: thing-1.tar.gz of things is not fetched: patch.py fetch"])
    assert not (workspace.datasets / "things").exists()


def test_what_was_changed_since_it_was_fetched_is_not_used(run, workspace):
    run("fetch")
    (workspace.datasets / ".sources/things/dep-1-py3-none-any.whl").write_text("another")
    status, out = run("prepare")
    assert status == 1 and "dep-1-py3-none-any.whl was changed since it was fetched: remove it" in out[1]


def test_a_failed_download_fails(run, shelf):
    del shelf.files["thing-2.tar.gz"]
    words = "error: 1 of 3 files were not brought: thing-2.tar.gz: the package index does not have it"
    assert run("fetch") == (1, [words])


def test_other_ids_than_the_pinned_are_refused(run, dataset):
    run("fetch")
    (dataset / "ids/thing-2.txt").write_text("tests/test_core.py::test_other\n")
    status, out = run("prepare")
    assert (status, out[0]) == (1, "refused, wrong-field: 1")
    assert "  thing-2: sha256 of the pass_to_pass ids is" in out[1]
    assert out[1].endswith("`patch.py ids --only thing-2` makes its ids again")


def test_missing_ids_are_refused(run, dataset):
    run("fetch")
    (dataset / "ids/thing-2.txt").unlink()
    status, out = run("prepare")
    assert status == 1 and out[1].endswith("make it with `patch.py ids`")


def test_a_suite_with_its_own_configuration_keeps_it(run, tmp_path, workspace, shelf, monkeypatch):
    monkeypatch.setitem(CONTENTS, "thing-2.tar.gz", sdist("thing-2", {**NEW, "pyproject.toml": "[x]\n"}))
    shelf.files = CONTENTS
    write_dataset(tmp_path / "own", suite='["pyproject.toml"]')
    assert run("fetch", folder=tmp_path / "own")[0] == 0
    assert run("prepare", "--folders", folder=tmp_path / "own")[0] == 0
    tests = contents(workspace.datasets / "own/tasks/thing-2/tests")
    assert "suite/pytest.ini" not in tests
    assert tests["suite/pyproject.toml"] == b"[x]\n"
    assert tests["test.sh"] == b"#!/bin/bash\nrun pyproject.toml tests\n"


def test_a_listed_path_that_no_release_has_is_told(run, tmp_path):
    write_dataset(tmp_path / "wrong", code='["thing", "lost"]')
    run("fetch", folder=tmp_path / "wrong")
    status, out = run("prepare", folder=tmp_path / "wrong")
    assert (status, out[1]) == (1, "  thing-2: thing-1.tar.gz has no lost, which its pair lists")


SECOND = """
[[pair]]
package = "other"
licence = "MIT"
code = ["thing"]
tests = ["tests"]
old = { version = "2", file = "other-2.tar.gz", sha256 = "SHA" }
new = { version = "3", file = "other-3.tar.gz", sha256 = "SHA" }
wheels = []
fail_to_pass = ["a"]
n_pass_to_pass = 1
pass_to_pass_sha256 = "0"
""".replace("SHA", "0" * 64)


@pytest.mark.parametrize("options", [["--only", "thing-2"], ["--ci"], ["--limit", "1"], ["--ci", "--limit", "3"]])
def test_a_part_needs_its_own_files_alone(run, dataset, options):
    with (dataset / "releases.toml").open("a") as file:
        file.write(SECOND)
    assert run("fetch", *options) == (0, ["things: 3 files fetched"])
    assert run("status")[1][0] == "source: not fetched"
    assert run("prepare", *options) == (0, [MADE])
    assert run("prepare")[1] == ["error: other-2.tar.gz of things is not fetched: patch.py fetch"]


@pytest.mark.parametrize("command", ["fetch", "prepare", "check", "ids"])
def test_a_pair_that_there_is_none_of(run, command):
    assert run(command, "--only", "thing-9") == (4, ["error: releases.toml has no pair 'thing-9'"])


def test_none_of_the_chosen_runs_on_every_change(run, dataset):
    toml = dataset / "releases.toml"
    toml.write_text(toml.read_text().replace("ci = true\n", ""))
    assert run("prepare", "--ci") == (0, ["things: 0 tasks, 0 refused, 0 errors"])


def test_without_a_workspace_the_command_line_says_so(run, monkeypatch):
    monkeypatch.delenv("OT_WORKSPACE", raising=False)
    status, out = run("status", into=None)
    assert status == 4 and out[0].startswith("error: OT_WORKSPACE is not set")
