"""Nothing of a task is loaded on the host, and nothing is written into a dataset, however pytest is called."""

import inspect
import os
import shutil
import sys
from pathlib import Path

import pytest
from _pytest.config import findpaths

from pytest_otval.glue._compat import search_ini_files_from
from pytest_otval.glue.guard import outside
from selftests.glue.conftest import ids

pytest_plugins = ["pytester"]

PYTHON = (
    "__init__.py",
    "conftest.py",
    "test_evil.py",
    "test-evil/conftest.py",
    "sitecustomize.py",
    "usercustomize.py",
    "evil.py",
    "setup.py",
)
SHADOWS = ("queue.py", "traceback.py", "pytest_otval.py", "pydantic.py", "sh.py", "execnet.py", "xdist.py")
"""Modules that somebody imports in the course of a run."""

_AS_INI = "addopts = -p evil\npythonpath = .\npython_files = *.py\ncache_dir = cache\n"
_AS_TOML = "addopts = ['-p', 'evil']\npythonpath = ['.']\npython_files = ['*.py']\ncache_dir = 'cache'\n"

INI = {
    "pytest.toml": f"[pytest]\n{_AS_TOML}",
    ".pytest.toml": f"[pytest]\n{_AS_TOML}",
    "pytest.ini": f"[pytest]\n{_AS_INI}",
    ".pytest.ini": f"[pytest]\n{_AS_INI}",
    "pyproject.toml": f"[tool.pytest.ini_options]\n{_AS_TOML}",
    "tox.ini": f"[pytest]\n{_AS_INI}",
    "setup.cfg": f"[tool:pytest]\n{_AS_INI}",
}


@pytest.fixture(autouse=True)
def _pytest_as_it_is(monkeypatch):
    """These tests may have been started as setup.sh's environment starts pytest."""
    monkeypatch.setattr(findpaths, "locate_config", inspect.unwrap(findpaths.locate_config))


@pytest.fixture
def canary(tmp_path):
    """The path of a file that hostile code writes."""
    return tmp_path / "canary"


@pytest.fixture
def hostile(project, canary):
    """A dataset with hostile files at every level, one of its tasks and itself called test-..."""
    dataset = project.dataset("test-set", {"a": {}, "test-x": {}})
    task = dataset / "tasks/test-x"
    for folder in (dataset, dataset / "tasks", task, task / "tests", dataset / "tasks/a"):
        write_hostile(folder, canary)
    return dataset


def write_hostile(folder, canary):
    for name in (*PYTHON, *SHADOWS):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"open({str(canary)!r}, 'a').write(__file__)\ndef test_evil(): pass\n")


def entries(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


CALLS = [
    (".", ["datasets/test-set"]),
    (".", ["datasets/test-set/tasks"]),
    (".", ["datasets/test-set/tasks/test-x"]),
    (".", ["datasets/test-set/tasks/test-x/task.toml"]),
    (".", ["datasets/test-set/tasks/test-x/task.toml::oracle"]),
    (".", ["datasets/test-set/tasks/test-x/tests"]),
    (".", ["datasets/test-set/tasks/test-x/tests/test_evil.py"]),
    (".", ["datasets"]),
    (".", ["."]),
    (".", ["ordinary", "datasets/test-set/tasks/a"]),
    ("datasets", []),
    ("datasets/test-set", []),
    ("datasets/test-set", ["tasks/a"]),
    ("datasets/test-set/tasks", []),
    ("datasets/test-set/tasks/test-x", []),
    ("datasets/test-set/tasks/test-x/tests", []),
    ("datasets/test-set/tasks/test-x", ["../a", "../../../../ordinary"]),
    ("/", ["{root}/datasets/test-set"]),
    ("/", ["{root}/datasets/test-set/tasks/test-x"]),
    ("/", ["{root}/datasets/test-set/tasks/test-x/task.toml::noop"]),
    (".", ["link"]),
    (".", ["link-to-tests"]),
    (".", ["nowhere"]),
    ("datasets/test-set/tasks/test-x", ["nowhere"]),
    (".", ["-c", "/dev/null", "datasets/test-set/tasks/test-x"]),
    (".", ["--rootdir", "datasets/test-set", "datasets/test-set/tasks/test-x"]),
    (".", ["--confcutdir", "/", "--import-mode=importlib", "datasets/test-set/tasks/test-x"]),
    (".", ["--doctest-modules", "datasets/test-set"]),
]


def prepare(project, hostile):
    (project.root / "link").symlink_to(hostile / "tasks/test-x")
    (project.root / "link-to-tests").symlink_to(hostile / "tasks/test-x/tests")
    (project.root / "ordinary").mkdir()
    (project.root / "ordinary/test_fine.py").write_text("def test_fine(): pass\n")


@pytest.mark.parametrize(("cwd", "args"), CALLS, ids=lambda part: part if isinstance(part, str) else " ".join(part))
def test_nothing_is_loaded_or_written(project, hostile, canary, monkeypatch, cwd, args):
    prepare(project, hostile)
    before = entries(hostile)
    monkeypatch.chdir(project.root / cwd)
    outcome = project.run(*(arg.format(root=project.root) for arg in args))
    assert not canary.exists(), canary.read_text()
    assert entries(hostile) == before
    assert outcome.status in (0, 4, 5), outcome.lines
    assert (outcome.status == 0) == any("passed" in line for line in outcome.lines)


SCRIPT = (str(Path(sys.executable).with_name("pytest")),)
MODULE = (sys.executable, "-m", "pytest")


@pytest.mark.parametrize(
    ("command", "cwd", "args"),
    [
        (SCRIPT, "datasets/test-set/tasks/test-x", []),
        (SCRIPT, "datasets/test-set/tasks/test-x", ["-n2"]),
        (SCRIPT, ".", ["-n2", "datasets/test-set"]),
        (SCRIPT, "/", ["-n2", "{root}/datasets/test-set/tasks/test-x"]),
        (MODULE, ".", ["datasets/test-set/tasks/test-x"]),
        (MODULE, ".", ["-n2", "datasets/test-set/tasks/test-x"]),
    ],
    ids=str,
)
def test_nothing_is_loaded_or_written_by_processes(project, hostile, canary, monkeypatch, command, cwd, args):
    prepare(project, hostile)
    before = entries(hostile)
    monkeypatch.chdir(project.root / cwd)
    outcome = project.process(*(arg.format(root=project.root) for arg in args), command=command)
    assert not canary.exists(), canary.read_text()
    assert entries(hostile) == before
    assert outcome.status == 0, outcome.lines + outcome.errors


def test_python_m_pytest_within_a_task_imports_nothing_once_we_are_there(project, hostile, canary, monkeypatch):
    """What Python and pytest import before they load plugins cannot be helped; the rest can, in workers as well."""
    for folder in (hostile / "tasks/test-x", hostile / "tasks/test-x/tests"):
        for name in SHADOWS:
            (folder / name).unlink()
        (folder / "pydantic.py").write_text(f"open({str(canary)!r}, 'a').write(__file__)\n")
    monkeypatch.chdir(hostile / "tasks/test-x")
    assert project.process("-n2", command=MODULE).status == 0
    assert not canary.exists(), canary.read_text()


@pytest.mark.parametrize("name", INI)
@pytest.mark.parametrize("place", [".", "tasks", "tasks/test-x", "tasks/test-x/tests"])
def test_with_an_ini_file_named_none_of_a_task_is_read(project, hostile, canary, place, name):
    (hostile / place / name).write_text(INI[name])
    for target in ("", "/tasks/test-x", "/tasks/test-x/tests"):
        assert project.run("-c", "/dev/null", f"datasets/test-set{target}").status == 0
    assert not canary.exists(), canary.read_text()


@pytest.mark.parametrize("name", INI)
@pytest.mark.parametrize("place", [".", "tasks", "tasks/test-x"])
def test_an_ini_file_of_a_task_is_refused(project, place, name):
    """It can no longer have had plugins imported, or else pytest would have done so before it asks us."""
    dataset = project.dataset(tasks={"test-x": {}})
    (dataset / place / name).write_text(harmless(name))
    refusal = project.run("datasets/demo/tasks/test-x").refusal
    assert refusal.startswith(f"{dataset / place / name} lies in a task or dataset and must not configure pytest")


def harmless(name):
    return INI[name].replace("-p", "-k").replace("python_files", "python_classes")


@pytest.mark.parametrize("layout", ["bare", "datasets/bare/tasks", "link"])
def test_an_ini_file_is_refused_where_no_dataset_toml_says_what_the_folder_is(project, layout):
    if layout == "link":
        (project.dataset() / "tasks/a/tests").mkdir()
        (project.root / "link").symlink_to("datasets/demo/tasks/a/tests")
        ini, argument = project.root / "link/pytest.ini", "link"
    else:
        ini = project.task(project.root / layout / "a").parents[layout.endswith("/tasks")] / "pytest.ini"
        argument = f"{layout}/a"
    ini.write_text(harmless("pytest.ini"))
    assert project.run(argument).refusal.startswith(f"{ini} lies in a task or dataset")


def test_the_ini_file_of_a_project_that_keeps_tasks_counts(project):
    project.task(project.root / "proj/tasks/a")
    (project.root / "proj/pytest.ini").write_text("[pytest]\naddopts = -m noop\n")
    assert project.collect("proj/tasks/a") == ids("a", dataset="proj", stages=("noop",))
    (project.root / "proj/link").symlink_to("tasks/a")
    assert project.collect("proj/tasks/a") == ids("a", dataset="proj", stages=("noop",))


# --- every place a task can lie in, with hostile files of every kind in every folder ---------------------------------

LAYOUTS = {
    "checkout": "{root}/datasets/test-set/tasks",
    "workspace": "{workspace}/datasets/test-set/tasks",
    "bare": "{root}/elsewhere/test-bare",
    "bare in datasets": "{root}/datasets/test-bare/tasks",
    "linked": "{root}/linked/test-set/tasks",
}
PLACES = {
    "dataset": (".", "{dataset}"),
    "dataset from the top": ("/", "{dataset}"),
    "folder of tasks": (".", "{tasks}"),
    "task": (".", "{tasks}/test_x"),
    "task from the top": ("/", "{tasks}/test_x"),
    "node id": (".", "{tasks}/tests/task.toml::noop"),
    "tests of a task": (".", "{tasks}/tests/tests"),
    "within the dataset": ("{dataset}", None),
    "within a task": ("{tasks}/test_x", None),
    "within a task, dot": ("{tasks}/tests", "."),
    "within tests": ("{tasks}/test_x/tests", None),
    "beside an ordinary test": (".", "ordinary {tasks}/tests"),
}


@pytest.fixture
def everywhere(project, canary):
    """Make the dataset of a layout, with hostile files all over; return its folders, and what may not change."""

    def make(layout):
        tasks = Path(LAYOUTS[layout].format(root=project.root, workspace=project.workspace))
        dataset = tasks.parent if tasks.name == "tasks" else tasks
        real = dataset
        if layout == "linked":
            real = project.workspace / "far" / dataset.name
            dataset.parent.mkdir()
            dataset.symlink_to(real)
        real_tasks = real / tasks.relative_to(dataset)
        if "bare" not in layout:
            project.dataset(real.name, {}, at=real.parent)
        for task in ("test_x", "tests"):
            project.task(real_tasks / task)
        for folder in (
            real,
            real_tasks,
            *(real_tasks / task / sub for task in ("test_x", "tests") for sub in ("", "tests")),
        ):
            write_hostile(folder, canary)
            for name, text in INI.items():
                (folder / name).write_text(text)
        (project.root / "ordinary").mkdir()
        (project.root / "ordinary/test_fine.py").write_text("def test_fine(): pass\n")
        (project.root / "conftest.py").write_text("def pytest_addoption(parser): parser.addoption('--upper')\n")
        return {"dataset": dataset, "tasks": tasks, "root": project.root}, real

    return make


def words(place, folders):
    cwd, args = PLACES[place]
    return cwd.format(**folders), [] if args is None else args.format(**folders).split()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_hostile_files_everywhere(project, everywhere, canary, monkeypatch, layout, place):
    search_ini_files_from(outside)
    folders, real = everywhere(layout)
    before = entries(real)
    cwd, args = words(place, folders)
    monkeypatch.chdir(project.root / cwd)
    outcome = project.run("-p", "cacheprovider", *args)
    assert not canary.exists(), canary.read_text()
    assert entries(real) == before
    assert outcome.status == 0, outcome.lines + outcome.errors
    assert outcome.counts.keys() <= {"passed", "warning"}


START = (sys.executable, "-P", "-m", "pytest_otval.glue.start")


@pytest.mark.parametrize("place", ["dataset from the top", "within a task", "beside an ordinary test"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_hostile_files_everywhere_with_workers(project, everywhere, canary, monkeypatch, layout, place):
    folders, real = everywhere(layout)
    before = entries(real)
    cwd, args = words(place, folders)
    monkeypatch.chdir(project.root / cwd)
    outcome = project.process("-n2", *args, command=START)
    assert not canary.exists(), canary.read_text()
    assert entries(real) == before
    assert outcome.status == 0, outcome.lines + outcome.errors
    assert outcome.counts.keys() <= {"passed", "warning"}


def test_the_hostile_files_would_be_heard(project, everywhere, canary, monkeypatch):
    """Without what guards against them, each kind of place gives itself away."""
    folders, _ = everywhere("checkout")
    monkeypatch.chdir(folders["tasks"] / "test_x")
    project.process("-p", "no:otval", command=(sys.executable, "-P", "-m", "pytest"))
    assert canary.exists()


@pytest.mark.parametrize("text", ["[pytest", "[pytest]\naddopts = '", "\0\xff"])
def test_started_so_pytest_does_not_even_open_them(project, text):
    task = project.dataset() / "tasks/a"
    for name in INI:
        (task / name).write_text(text)
    (task / "pytest.ini").unlink()
    os.mkfifo(task / "pytest.ini")
    assert project.process("datasets/demo/tasks/a", command=START).status == 0


def test_started_so_the_ini_file_of_the_project_counts(project, monkeypatch):
    task = project.dataset() / "tasks/a"
    (task / "pytest.ini").write_text("[pytest]\naddopts = -m oracle\n")
    project.pytester.makepyprojecttoml("[tool.pytest.ini_options]\naddopts = '-m noop'\n")
    monkeypatch.chdir(task)
    for args in ([], ["."], ["-c", project.root / "pyproject.toml"]):
        assert project.process("--co", "-q", *args, command=START).ids == ids("a", stages=("noop",))
    assert project.process("--co", "-q", "-c", task / "pytest.ini", command=START).status == 4


def test_a_pyproject_that_does_not_speak_of_pytest_is_no_matter(project):
    task = project.dataset() / "tasks/a"
    (task / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert project.collect("datasets/demo/tasks/a") == ids("a")


def test_a_refused_ini_file_has_no_effect(project, canary):
    dataset = project.dataset()
    (dataset / "pytest.ini").write_text(f"[pytest]\naddopts = --junitxml={canary} --log-file={canary}\n")
    assert "must not configure pytest" in project.run("datasets/demo").refusal
    assert not canary.exists()


def test_conftests_of_the_project_still_load(project):
    project.dataset()
    project.pytester.makepyprojecttoml("[tool.pytest.ini_options]\ntestpaths = ['checks']\n")
    option = "def pytest_addoption(parser): parser.addoption('--{}')\n"
    (project.root / "conftest.py").write_text(option.format("upper"))
    (project.root / "checks").mkdir()
    (project.root / "checks/conftest.py").write_text(option.format("lower"))
    (project.root / "checks/test_one.py").write_text("def test_one(): pass\n")
    assert project.collect("datasets/demo/tasks/a", "--upper=1") == ids("a")
    for args in ([], ["checks"], ["checks/test_one.py::test_one"], ["datasets/demo", "checks"]):
        assert "checks/test_one.py::test_one" in project.collect("--upper=1", "--lower=1", *args)


def test_conftests_in_test_folders_still_load(project, monkeypatch):
    for name in ("tests", "test_more"):
        (project.root / name).mkdir()
        (project.root / name / "conftest.py").write_text(f"def pytest_addoption(parser): parser.addoption('--{name}')")
    project.dataset("test-set", at=project.root)
    (project.root / "test-set/conftest.py").write_text("raise RuntimeError('loaded')")
    assert project.run("--tests=1", "--test_more=1").status == 5
    assert project.run("--tests=1", "--test_more=1", ".").status == 5


@pytest.mark.parametrize("marker", ["dataset.toml", ""])
def test_a_rootdir_within_a_dataset_gets_no_cache(project, monkeypatch, marker):
    dataset = project.dataset(tasks={"a": {"oracle": "wrong-reward"}})
    if not marker:
        (dataset / "dataset.toml").unlink()
    before = entries(dataset)
    monkeypatch.chdir(dataset)
    assert project.run("-p", "cacheprovider").status == 1
    assert entries(dataset) == before
    assert project.collect("--lf") == ids("a", stages=("oracle",))


def test_a_project_that_keeps_tasks_keeps_its_cache(project):
    project.task(project.root / "tasks/a")
    project.pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    assert project.run("tasks/a").status == 0
    assert (project.root / ".pytest_cache").is_dir()


def test_a_hostile_dataset_toml_does_not_stop_a_run(project):
    dataset = project.dataset()
    (dataset / "dataset.toml").unlink()
    os.mkfifo(dataset / "dataset.toml")
    assert project.run("datasets/demo/tasks/a").status == 0
    shutil.rmtree(dataset / "tasks")
    assert project.run("datasets/demo").status == 4
