"""What tasks of repositories do, with real git and real pytest: their scripts run here, in folders of the test."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomli

from pytest_otval.sources.adapters.registry import make_adapter
from pytest_otval.sources.adapters.repository_task import FORGET_HISTORY
from pytest_otval.sources.files import publish_folder
from selftests.sources.adapters.samples import CODE, FIXED, TESTS, bug, diff, row, write_folder, write_jsonl

OLD_TESTS = "def test_nothing():\n    pass\n"


class Place:
    """A converted task whose scripts see folders of the test in place of a container's."""

    def __init__(self, folder, outcome):
        self.folder = folder
        self.task = folder / "task"
        files = dict(outcome.files)
        publish_folder(files, self.task)
        self.config = tomli.loads(files["task.toml"].content.decode())
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "GIT_CONFIG_SYSTEM": str(folder / "gitconfig"),
            "OT_PYTHON": sys.executable,
        }
        (folder / "logs").mkdir()
        (folder / "tests").symlink_to(self.task / "tests")
        (folder / "solution").symlink_to(self.task / "solution")

    def here(self, script):
        names = "testbed|tests|logs|solution|tmp/start.git"
        return re.sub(rf"(?<![\w.])/({names})(?![\w-])", rf"{self.folder}/\1", script)

    def run(self, script, check=True, **env):
        place = self.folder / "testbed"
        command = ["bash", "-c", self.here(script)]
        run = subprocess.run(command, cwd=place, env=self.env | env, capture_output=True, text=True, check=False)
        assert not check or run.returncode == 0, run.stdout + run.stderr
        return run.stdout + run.stderr

    def make_repository(self, files):
        place = self.folder / "testbed"
        subprocess.run(["rm", "-rf", str(place)], check=True)
        write_folder(place, files)
        self.run("git init -q . && git add -A -f && git -c user.name=a -c user.email=a@b commit -q -m old")
        self.run("echo fixed > product.py; git -c user.name=a -c user.email=a@b commit -qam the-fix; git tag fix")
        self.run("git checkout -q HEAD~1 && echo new > untracked.txt")
        assert f"RUN {FORGET_HISTORY}\n" in (self.task / "environment/Dockerfile").read_text()
        self.run(FORGET_HISTORY)

    def judge(self, files):
        """Take the work along as the task says, and run the verifier over a new repository."""
        self.run(self.config["verifier"]["collect"][0]["command"])
        self.make_repository(files)
        log = self.run((self.task / "tests/test.sh").read_text(), check=False)
        return (self.folder / "logs/verifier/reward.txt").read_text().strip(), log


FILES = {"product.py": CODE, "tests/test_product.py": OLD_TESTS, "kept.log": "tracked\n", ".gitignore": "*.log\n"}


@pytest.fixture
def place(tmp_path):
    def make(files=FILES, **changes):
        changes = {"test_patch": diff("tests/test_product.py", OLD_TESTS, TESTS), **changes}
        source = write_jsonl(tmp_path / "rows.jsonl", [row(**changes)])
        (outcome,) = make_adapter("swe").convert(source)
        made = Place(tmp_path, outcome)
        made.make_repository(files)
        return made

    return make


def test_of_the_history_nothing_stays(place):
    made = place()
    assert made.run("git log --all --oneline | wc -l").strip() == "1"
    assert made.run("git status --porcelain") == ""
    assert set(made.run("git ls-files").split()) == {*FILES, "untracked.txt"}
    assert "the-fix" not in made.run("git cat-file --batch-all-objects --batch-check; cat .git/packed-refs")
    assert made.run("git cat-file --batch-all-objects --batch | grep -ac '^fixed$' || true").strip() == "0"
    assert made.run("git remote; git tag; git branch --format='%(refname:short)'").split() == [
        "otval-start",
        "main-without-history",
    ]


def test_the_reference_solution_is_paid(place):
    made = place()
    made.run((made.task / "solution/solve.sh").read_text())
    assert (made.folder / "testbed/product.py").read_text() == FIXED
    reward, log = made.judge(FILES)
    assert reward == "1", log


def test_doing_nothing_is_not_paid(place):
    reward, log = place().judge(FILES)
    assert reward == "0"
    assert "2 expected tests did not pass" in log


CHEATS = {
    "tests": 'echo "def test_zero(): pass" > tests/test_product.py',
    "tests removed": "git rm -q tests/test_product.py",
    "conftest": "echo 'import os; os._exit(0)' > conftest.py",
    "conftest below": "echo 'def pytest_runtest_call(item): item.obj = lambda **_: 0' > tests/conftest.py",
    "settings": "printf '[pytest]\\naddopts = --deselect tests\\n' > pytest.ini",
    "another pytest": "echo 'main = lambda *_: 0' > pytest.py; mkdir _pytest; touch _pytest/__init__.py",
    "what looks like a plugin": (
        "mkdir good-1.dist-info; printf '[pytest11]\\ngood = good\\n' > good-1.dist-info/entry_points.txt;"
        "printf 'Metadata-Version: 2.1\\nName: good\\nVersion: 1\\n' > good-1.dist-info/METADATA;"
        "echo 'def pytest_pyfunc_call(pyfuncitem): return True' > good.py"
    ),
    "committed": "echo '# x' >> product.py; git -c user.name=a -c user.email=a@b commit -qam x",
    "a link": "ln -s /etc/passwd link; rm -rf tests; ln -s /tmp tests",
    "a reward": "mkdir -p logs/verifier; echo 1 > logs/verifier/reward.txt",
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_what_is_no_work_on_the_code_is_not_paid(place, cheat):
    made = place()
    made.run(CHEATS[cheat])
    reward, log = made.judge(FILES)
    assert reward == "0", log


@pytest.mark.parametrize("cheat", [name for name in CHEATS if name not in ("a link", "committed")])
def test_it_harms_no_right_work_either(place, cheat):
    made = place()
    made.run(CHEATS[cheat])
    (made.folder / "testbed/product.py").write_text(FIXED)
    reward, log = made.judge(FILES)
    assert reward == "1", log


def test_work_that_was_committed_counts(place):
    made = place()
    made.run("sed -i 's/a - b/a + b/' product.py && git -c user.name=a -c user.email=a@b commit -qam x")
    assert made.judge(FILES)[0] == "1"


def test_settings_that_the_reference_patch_changes_are_taken(place):
    settings = "[tool:pytest]\npython_functions = test_*\n"
    fix = row()["patch"] + diff("setup.cfg", "[metadata]\n", settings)
    files = {**FILES, "setup.cfg": "[metadata]\n"}
    made = place(files, patch=fix)
    made.run((made.task / "solution/solve.sh").read_text())
    made.judge(files)
    assert (made.folder / "testbed/setup.cfg").read_text() == settings


def test_without_the_work_there_is_a_reward_of_0(place):
    made = place()
    log = made.run((made.task / "tests/test.sh").read_text(), check=False)
    assert (made.folder / "logs/verifier/reward.txt").read_text() == "0\n"
    assert "there is no" in log


def test_binary_files_and_modes_come_along(place):
    made = place()
    work = made.folder / "testbed"
    (work / "data.bin").write_bytes(bytes(range(256)))
    made.run("sed -i 's/a - b/a + b/' product.py; chmod +x product.py")
    assert made.judge(FILES)[0] == "1"
    assert (work / "data.bin").read_bytes() == bytes(range(256))
    assert os.access(work / "product.py", os.X_OK)


UNITTEST = (
    "import unittest\nfrom product import add\n\n\nclass TestSum(unittest.TestCase):\n"
    "    def test_sum(self):\n        for a in (1, 2):\n            with self.subTest(a=a):\n"
    "                self.assertEqual(add(a, 1), a + 1)\n\n"
    "    @unittest.skip('no')\n    def test_skipped(self):\n        pass\n"
)


def bug_place(tmp_path, command, tests, **changes):
    source = write_folder(tmp_path / "source", bug(**{"run_test.sh": command, **changes}))
    (outcome,) = make_adapter("bugsinpy").convert(source)
    made = Place(tmp_path, outcome)
    write_folder(tmp_path / "testbed", {"product.py": CODE, "tests/__init__.py": "", "tests/test_product.py": tests})
    made.run(
        "git init -q . && git add -A -f && git -c user.name=a -c user.email=a@b commit -q -m x && git tag otval-start"
    )
    return made


BEGIN_AGAIN = "git reset -q --hard otval-start && git clean -fdxq"
"""Bytecode goes as well: a file that is changed twice in a second, and keeps its size, looks unchanged to Python."""


def judged(made, fix):
    made.run(BEGIN_AGAIN)
    if fix:
        made.run((made.task / "solution/solve.sh").read_text())
    made.run(made.config["verifier"]["collect"][0]["command"])
    made.run(BEGIN_AGAIN)
    log = made.run((made.task / "tests/test.sh").read_text(), check=False)
    return (made.folder / "logs/verifier/reward.txt").read_text().strip(), log


COMMANDS = [
    ("pytest tests/test_product.py", TESTS, True),
    ("pytest tests/test_product.py::test_sum\npytest tests/test_product.py::test_zero", TESTS, True),
    ("pytest tests/test_product.py::test_absent", TESTS, False),
    ("python -m unittest -q tests.test_product.TestSum.test_sum", UNITTEST, True),
    ("python -m unittest -q tests.test_product", UNITTEST, False),
    ("python -m unittest -q tests.test_product.TestSum.test_skipped", UNITTEST, False),
    ("python -m unittest -q tests.test_product.TestSum.test_absent", UNITTEST, False),
]


@pytest.mark.parametrize(("command", "tests", "passes"), COMMANDS)
def test_bugs_are_judged_by_what_their_command_runs(tmp_path, command, tests, passes):
    made = bug_place(tmp_path, command, tests)
    reward, log = judged(made, fix=True)
    assert reward == ("1" if passes else "0"), log
    assert judged(made, fix=False)[0] == "0"


def test_the_fix_of_a_bug_needs_its_python_path(tmp_path):
    made = bug_place(tmp_path, "pytest tests/test_product.py", TESTS.replace("from product", "from deep.product"))
    write_folder(tmp_path / "testbed/lib/deep", {"product.py": FIXED, "__init__.py": ""})
    made.run("git add -A && git -c user.name=a -c user.email=a@b commit -q --amend -m x && git tag -f otval-start")
    assert judged(made, fix=True)[0] == "0"
    made.env["PYTHONPATH"] = str(tmp_path / "testbed/lib")
    assert judged(made, fix=True)[0] == "1"


def test_ids_are_told_apart_however_they_look(tmp_path):
    folder = Path(__file__).parents[3] / "pytest_otval/data/adapters/repository"
    suite = "import pytest\n@pytest.mark.parametrize('x', ['a::b', 'c[d]', 'e.py/f', ' ', '<&', 'ü', 'a.b'])\n"
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/test_it.py").write_text(suite + "def test_odd(x): pass\ndef test_other(): assert 0\n")
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    run = [sys.executable, "-m", "pytest", "-q", "-rp", "-p", "no:cacheprovider", "--junitxml=report.xml", "sub"]
    listed = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False, env=env).stdout
    passed = [line.removeprefix("PASSED ") for line in listed.splitlines() if line.startswith("PASSED ")]
    assert len(passed) == 7

    def grade(**ids):
        ids = {"fail_to_pass": [], "pass_to_pass": [], "selected": [], **ids}
        (tmp_path / "ids.json").write_text(json.dumps(ids))
        command = [sys.executable, "-I", str(folder / "grade.py"), "ids.json", "report.xml"]
        return subprocess.run(command, cwd=tmp_path, check=False, capture_output=True).returncode

    assert grade(fail_to_pass=passed) == 0
    assert grade(fail_to_pass=[*passed, "sub/test_it.py::test_other"]) == 1
    assert grade(pass_to_pass=["sub/test_it.py::test_odd[x]"]) == 1
    assert grade(selected=["sub/test_it.py::test_odd"]) == 0
    assert grade(selected=["sub/test_it.py::test_od"]) == 1
    assert grade(selected=["sub/test_it.py"]) == 1
    (tmp_path / "report.xml").write_text("<testsuites>")
    assert grade(fail_to_pass=passed) == 1
