"""Finding pairs, with a made-up index; in integration with real containers, whose suites are shell scripts."""

from contextlib import nullcontext

import pytest

from pytest_otval.sources.fetch import PackageIndex
from pytest_otval.sources.releases import laboratory, mining
from pytest_otval.sources.releases.dataset import ReleaseDataset
from pytest_otval.sources.releases.laboratory import Laboratory, Run, Runs
from pytest_otval.sources.releases.mining import Found, Miner, Wanted
from pytest_otval.sources.releases.pairs import Releases, ids_digest
from pytest_otval.sources.releases.task import task_files
from pytest_otval.workspace import Workspace

INFO = "Metadata-Version: 2.1\nName: thing\nLicense: MIT\n"
OLD = {"thing/__init__.py": "", "tests/test_a.py": "", "PKG-INFO": INFO}
NEW = {**OLD, "thing/new.py": "", "tests/test_a.py": "import thing\n"}
TEMPLATES = dict.fromkeys(("task.toml.in", "instruction.md", "Dockerfile", "test.sh", "grade.py", "solve.sh"), "")


class FakeLab:
    """Answers what it is told, for any pair."""

    def __init__(self):
        self.old, self.new = [{"kept"}], [{"kept", "fixed"}]
        self.output = ""
        self.asked = []

    def run(self, inputs, repeats, seconds):
        task_files(inputs)
        self.asked.append((inputs.pair, repeats))
        return Runs(*(tuple(Run(frozenset(ids), self.output) for ids in group) for group in (self.old, self.new)))


@pytest.fixture
def lab():
    return FakeLab()


@pytest.fixture
def mine(shelf, lab, tmp_path, monkeypatch):
    monkeypatch.setattr(mining, "resolve", lambda requirements, known: [])
    there = Releases()

    def mine(package="thing", **wanted):
        options = Wanted(**{"last": 3, "repeats": 2, **wanted})
        return list(Miner(mine.there, TEMPLATES, shelf, tmp_path / "fetched", lab, options).mine(package))

    mine.there = there
    return mine


@pytest.fixture
def two(shelf):
    shelf.add("thing", "1", OLD)
    shelf.add("thing", "2", NEW)


def why(found):
    (one,) = found
    assert not isinstance(one, Found) and one.why.isprintable()
    return one.why


def test_a_pair_is_found(mine, two, lab):
    (found,) = mine(deselect=("tests/test_slow.py",))
    pair = found.pair
    assert (pair.name, pair.licence, pair.code, pair.tests) == ("thing-2", "MIT", ("thing",), ("tests",))
    assert (pair.fail_to_pass, found.pass_to_pass, pair.left_out) == (("fixed",), ("kept",), ())
    assert pair.deselect == ("tests/test_slow.py",)
    assert pair.why_not_the_pinned(found.pass_to_pass) == ""
    assert lab.asked[0][1] == 2


def test_flaky_ids_are_left_out_and_named(mine, two, lab):
    lab.old, lab.new = [{"kept", "moody"}, {"kept"}], [{"kept", "fixed", "moody"}, {"kept", "fixed", "new"}]
    (found,) = mine()
    assert [one.id for one in found.pair.left_out] == ["moody", "new"]
    assert found.pair.left_out[0].reason == "its outcome differs between 2 runs"
    assert found.pair.graded_fail_to_pass == ("fixed",) and found.pass_to_pass == ("kept",)
    assert (found.pair.n_pass_to_pass, found.pair.pass_to_pass_sha256) == (2, ids_digest(["kept", "moody"]))
    assert found.pair.why_not_the_pinned(found.pass_to_pass) == ""


@pytest.mark.parametrize(
    ("old", "new", "output", "words"),
    [
        ([set()], [set()], "no tests ran in 0.01s", "passes on its own code: it collects nothing"),
        ([set()], [set()], "E   ImportError: no \x1b thing", r"passes on its own code: ImportError: no \x1b thing"),
        ([{"a"}], [{"a"}], "", "no test fails on the old code and passes on the new one"),
        ([set()], [{"a"}], "", "no test passes on the old code"),
        ([{"a"}], [{"a", "b"}], "E  x: Network is unreachable", "needs the network, or --deselect: x: Network"),
        ([{"a"}], [{"a", "b"}, {"a"}], "", "no test fails on the old code"),
    ],
)
def test_what_is_no_pair_is_refused_with_the_reason(mine, two, lab, old, new, output, words):
    lab.old, lab.new, lab.output = old, new, output
    assert words in why(mine())


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ({"thing/__init__.py": "", "PKG-INFO": INFO}, "has no tests"),
        ({**NEW, "PKG-INFO": "Name: thing\n"}, "name no licence"),
        (
            {**NEW, "tests/test_a.py": "import absent, more"},
            "its tests import absent, more, which nothing",
        ),
        ({**NEW, "PKG-INFO": f"{INFO}Requires-Dist: x @ https://h/x.whl\n"}, "no release on a package index"),
        ({"src/other/__init__.py": "", "tests/test_a.py": "", "PKG-INFO": INFO}, "thing-1.tar.gz has no src/other"),
        ({"thing.py": "", "test_$(id).py": "", "PKG-INFO": INFO}, "tests: String should match pattern"),
    ],
)
def test_what_the_archive_lacks_is_told(mine, shelf, new, words):
    shelf.add("thing", "1", OLD)
    shelf.add("thing", "2", new)
    assert words in why(mine())


def test_a_release_for_another_python_is_refused(mine, shelf):
    shelf.add("thing", "1", OLD)
    shelf.add("thing", "2", NEW, requires_python=">=3.12")
    assert why(mine()) == "it needs Python >=3.12, the images have 3.11"


def test_the_newest_pairs_that_are_not_there_yet(mine, shelf, two):
    shelf.add("thing", "3", OLD | {"thing/__init__.py": "x = 1"})
    shelf.add("thing", "4", NEW)
    (second,) = [one.pair for one in mine(last=3) if one.pair.name == "thing-2"]
    mine.there = Releases(pair=(second,))
    assert [getattr(one, "name", "") or one.pair.name for one in mine(last=3)] == ["thing-2", "thing-3", "thing-4"]
    assert mine(last=3)[0].why == "is there already"
    assert [one.pair.name for one in mine(last=1)] == ["thing-4"]


def test_a_project_that_is_not_there(mine, shelf):
    assert "no such project" in why(mine("nothing"))
    shelf.add("thing", "1", OLD)
    assert "fewer than two releases" in why(mine())


SUITE = """\
tests/test_a.py::test_kept thing/__init__.py
tests/test_a.py::test_new thing/new.py
tests/test_a.py::test_never thing/never.py
"""
"""Each test asks whether a file is there."""
SCRIPTS = {
    "Dockerfile": "FROM debian:bookworm-slim\nCOPY app/ /app/\n",
    "solve.sh": "#!/bin/sh\ncp -R /solution/files/. /app/\n",
    "test.sh": '#!/bin/sh\nwhile read -r id file; do [ ! -e "/app/$file" ] || echo "PASSED $id"; done'
    " </tests/suite/tests/test_a.py\n",
}


@pytest.mark.integration
def test_from_mining_to_a_task(real, image, shelf, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(mining, "resolve", lambda requirements, known: [])
    monkeypatch.setattr(PackageIndex, "download", lambda index, *asked: shelf.download(*asked))
    monkeypatch.setattr(PackageIndex, "releases", lambda index, project: shelf.releases(project))
    lab = Laboratory(real.sandbox, real.images, real.scratch)
    monkeypatch.setattr(laboratory, "laboratory", lambda workspace: nullcontext(lab))
    shelf.add("thing", "1", OLD)
    shelf.add("thing", "2", {**NEW, "tests/test_a.py": SUITE})
    shelf.add("thing", "3", {**NEW, "thing/more.py": "", "tests/test_a.py": SUITE})
    shelf.add("thing", "4", {**NEW, "thing/more.py": "", "tests/test_a.py": SUITE})
    folder = tmp_path / "things"
    (folder / "template").mkdir(parents=True)
    for name, content in {**TEMPLATES, "task.toml.in": '[task]\nname = "x/@NAME@"\n', **SCRIPTS}.items():
        (folder / "template" / name).write_text(content)
    source = '[otval]\nadapter = "releases"\n[otval.source]\nkind = "package-index"\n'
    (folder / "dataset.toml").write_text(f'[dataset]\nname = "org/things"\n{source}')
    (folder / "releases.toml").write_text("[wheels]\n")
    (tmp_path / "ws").mkdir()

    def run(*argv):
        status = ReleaseDataset(str(folder / "patch.py"), workspace=Workspace(tmp_path / "ws")).main(argv)
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    assert run("mine", "thing", "--repeat", "1")[0] == 4
    assert run("mine", "nothing")[0] == 1
    status, out = run("mine", "Thing")
    assert status == 0 and out.startswith("# thing-2: found\n[[pair]]\n")
    assert out.splitlines()[-2:] == [
        "# thing-3: no test fails on the old code and passes on the new one",
        "# thing-4: no file of the new code is new or differs",
    ]
    assert (folder / "ids/thing-2.txt").read_text() == "tests/test_a.py::test_kept\n"
    # What it prints can be taken as it is.
    with (folder / "releases.toml").open("a") as file:
        file.write(out)
    (folder / "ids/thing-2.txt").unlink()
    assert run("ids") == (0, "thing-2: 1 ids pass on both codes, as pinned\nthings: ids: 1 of 1 done\n")
    assert run("prepare") == (0, "things: 1 tasks, 0 refused, 0 errors\n")
    (folder / "releases.toml").write_text((folder / "releases.toml").read_text().replace("test_new", "test_never"))
    assert run("ids")[1].startswith("thing-2: tests/test_a.py::test_never does not pass on the new code\n")
