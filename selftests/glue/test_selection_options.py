"""--otval-tasks, --otval-limit, and folders of datasets."""

import os
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.core import OtvalUsageError
from pytest_otval.glue.narrow import narrow
from pytest_otval.glue.selection import DatasetSelection
from selftests.glue.conftest import ids

pytest_plugins = ["pytester"]

OWN = ["datasets/demo/dataset.toml::static"]
TASKS = {"alpha": {}, "beta": {}, "gamma": {}, "Beta": {}}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--otval-tasks", "beta"], ["beta"]),
        (["--otval-tasks", "?eta"], ["Beta", "beta"]),
        (["--otval-tasks", "[ab]*"], ["alpha", "beta"]),
        (["--otval-tasks", "*a"], ["Beta", "alpha", "beta", "gamma"]),
        (["--otval-tasks", "gamma,al*"], ["alpha", "gamma"]),
        (["--otval-tasks", "gamma,*mm*"], ["gamma"]),
        (["--otval-limit", "2"], ["Beta", "alpha"]),
        (["--otval-limit", "99"], ["Beta", "alpha", "beta", "gamma"]),
        (["--otval-tasks", "?eta", "--otval-limit", "1"], ["Beta"]),
        (["--otval-tasks", "gamma,beta", "--otval-limit", "1"], ["beta"]),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("argument", ["datasets/demo", "datasets/demo/tasks"])
def test_of_a_dataset_are_taken(project, options, expected, argument):
    project.dataset(tasks=TASKS)
    assert project.collect(argument, *options) == OWN + ids(*expected)


def test_the_own_item_of_a_dataset_is_not_counted_and_not_asked_for_by_name(project):
    project.dataset(tasks=TASKS)
    assert project.collect("datasets/demo", "--otval-limit=1", "-m", "static") == OWN + ids("Beta", stages=("static",))
    assert project.collect("datasets/demo/dataset.toml", "datasets/demo/tasks/beta", "--otval-limit=1") == (
        OWN + ids("beta")
    )


def test_what_is_named_is_narrowed_too(project):
    project.dataset(tasks=TASKS)
    named = ["datasets/demo/tasks/beta", *ids("alpha", "gamma", stages=("noop",))]
    assert project.collect(*named, "--otval-tasks=*m*") == ids("gamma", stages=("noop",))
    assert project.collect(*named, "--otval-limit=2") == [*ids("alpha", stages=("noop",)), *ids("beta")]
    assert "matches no task of demo" in project.run(*named, "--otval-tasks=Beta").refusal


def test_each_dataset_has_its_own_limit(project):
    project.dataset(tasks=TASKS)
    project.dataset("zoo", {"beta": {}, "zebra": {}})
    both = project.collect("datasets", "--otval-limit=1", "-m", "noop")
    assert both == ids("Beta", stages=("noop",)) + ids("beta", dataset="zoo", stages=("noop",))


def test_a_dataset_of_which_no_task_is_left_is_left_out(project):
    project.dataset(tasks=TASKS)
    project.dataset("zoo", {"zebra": {}})
    assert project.collect("datasets", "--otval-tasks=z*") == (
        ["datasets/zoo/dataset.toml::static", *ids("zebra", dataset="zoo")]
    )
    assert project.collect("datasets/zoo", "datasets/demo/dataset.toml", "--otval-tasks=z*")[0] == OWN[0]


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("betta", "'betta' matches no task of demo, zoo; did you mean 'beta'?"),
        ("betta*", "'betta*' matches no task of demo, zoo; did you mean 'beta'?"),
        ("beta,q*", "'q*' matches no task of demo, zoo"),
        ("beta,", "'' matches no task of demo, zoo"),
        ("BETA", "'BETA' matches no task of demo, zoo"),
        ("../tasks/beta", "'../tasks/beta' matches no task of demo, zoo"),
    ],
)
def test_a_pattern_that_matches_nothing_is_refused(project, pattern, said):
    project.dataset(tasks=TASKS)
    project.dataset("zoo", {"zebra": {}})
    assert project.run("datasets", f"--otval-tasks={pattern}").refusal == f"--otval-tasks: {said}"


def test_with_workers_the_refusal_is_one_line_too(project):
    project.dataset()
    assert "'none' matches no task" in project.process("-n2", "datasets", "--otval-tasks=none").refusal


@pytest.mark.parametrize("limit", ["0", "-1", "x", "1.5"])
def test_a_limit_is_a_number_of_tasks(project, limit):
    project.dataset()
    outcome = project.run("datasets/demo", f"--otval-limit={limit}")
    assert outcome.status == 4
    assert any("is no positive number" in line for line in outcome.errors)


def test_with_workers_the_same_is_run(project):
    project.dataset(tasks=TASKS)
    outcome = project.process("-n2", "datasets/demo", "--otval-tasks=*eta", "--otval-limit=1")
    assert (outcome.status, outcome.counts) == (0, {"passed": 5})
    assert sorted(project.ledger()) == sorted(OWN + ids("Beta"))


def test_ordinary_tests_are_none_of_their_business(project):
    project.dataset()
    project.pytester.makepyfile(test_plain="def test_one(): pass\ndef test_two(): pass\n")
    options = ["--otval-tasks=b", "--otval-limit=1"]
    plain = ["test_plain.py::test_one", "test_plain.py::test_two"]
    assert project.collect("test_plain.py", *options) == plain
    assert project.collect("test_plain.py", "datasets/demo/tasks", *options) == [*OWN, *ids("b"), *plain]


class Listed:
    """A source of tasks that has these names."""

    def __init__(self, names):
        self._names = sorted(names)

    def names(self):
        return self._names, []

    def has(self, name):
        return name in self._names


NAMES = st.sets(st.text("abc", min_size=1, max_size=3), max_size=12)
PATTERNS = st.lists(st.text("abc*?[]!-", min_size=1, max_size=4), max_size=3)


@given(NAMES, NAMES, PATTERNS, st.integers(0, 4))
def test_what_is_left_is_what_the_patterns_and_the_limit_say(all_names, named, patterns, limit):
    selection = {
        "whole": DatasetSelection(None, whole=True, _source=Listed(all_names)),
        "named": DatasetSelection(None, tasks=dict.fromkeys(named, frozenset({"noop"}))),
    }
    given_names = {"whole": all_names, "named": named}

    def matches(name):
        return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)

    expected = {dataset: sorted(filter(matches, names))[: limit or None] for dataset, names in given_names.items()}
    used = all(any(fnmatchcase(name, pattern) for name in all_names | named) for pattern in patterns)
    try:
        narrow(selection, ",".join(patterns), limit)
    except OtvalUsageError:
        assert not used
        return
    assert used
    if not patterns and not limit:
        assert selection["whole"].whole
        return
    for dataset, names in expected.items():
        assert list(selection[dataset].tasks if dataset in selection else []) == names


# --- folders of datasets --------------------------------------------------------------------------------


@pytest.mark.parametrize(("cwd", "args"), [(".", ["datasets"]), ("datasets", ["."]), ("datasets", []), ("/", None)])
def test_a_folder_of_datasets_selects_all_of_them(project, monkeypatch, cwd, args):
    project.dataset()
    project.dataset("zoo", {"z": {}})
    project.task(project.root / "datasets/bare/x")
    monkeypatch.chdir(project.root / cwd)
    expected = [
        *ids("x", dataset="bare"),
        *OWN,
        *ids("a", "b"),
        "datasets/zoo/dataset.toml::static",
        *ids("z", dataset="zoo"),
    ]
    assert project.collect(*(args if args is not None else [project.root / "datasets"])) == expected


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_those_that_are_not_prepared_are_named_in_one_warning(project, workers):
    project.dataset()
    for name in ("later", "never"):
        project.dataset(name, {})
    (project.root / "datasets/later/patch.py").touch()
    outcome = project.process(workers, "-Werror", "datasets")
    assert (outcome.status, outcome.counts) == (0, {"passed": 9, "warning": 1})
    (said,) = [line.strip() for line in outcome.lines if "left out" in line]
    assert "dataset later is not prepared: run `python datasets/later/patch.py fetch`" in said
    assert "dataset never is not prepared: it has no tasks and no patch.py" in said


def test_a_dataset_that_is_prepared_in_the_workspace_counts(project):
    project.dataset(tasks={})
    project.dataset(at=project.workspace / "datasets")
    assert project.collect("datasets") == OWN + ids("a", "b")


def test_where_none_is_prepared_the_run_is_refused(project):
    project.dataset(tasks={})
    assert project.run("datasets").refusal == "datasets: dataset demo is not prepared: it has no tasks and no patch.py"


def test_a_stage_of_a_folder_of_datasets_is_chosen_by_mark(project):
    project.dataset()
    assert "`-m oracle`" in project.run("datasets::oracle").refusal


def test_a_dataset_of_the_folder_whose_name_cannot_stand_in_a_node_id_is_refused(project):
    project.dataset()
    project.dataset("my set")
    assert "rename it" in project.run("datasets").refusal


def test_two_of_one_name_in_two_folders_are_refused(project):
    project.dataset()
    project.dataset(at=project.root / "more/datasets")
    assert "two datasets are called demo" in project.run("datasets", "more/datasets").refusal


def test_a_folder_of_another_name_counts_if_it_holds_nothing_but_datasets(project):
    project.dataset(at=project.root / "collection")
    (project.root / "collection/test_loose.py").write_text("def test_one(): pass\n")
    for name in (".git", "__pycache__"):
        (project.root / "collection" / name).mkdir()
    loose = "collection/test_loose.py::test_one"
    assert project.collect("collection") == [*OWN, *ids("a", "b"), loose]
    (project.root / "collection/src").mkdir()
    assert project.collect("collection") == [loose]


def test_code_beside_datasets_is_not_run(project):
    """What lies in datasets/ and is no dataset may be one that is being fetched."""
    project.dataset()
    other = project.root / "datasets/fetching"
    other.mkdir()
    (other / "test_x.py").write_text("raise RuntimeError('imported on the host')")
    assert project.run("datasets").status == 0
    (project.root / "datasets/demo/dataset.toml").unlink()
    assert project.run("datasets").counts == {"passed": 8}


def test_a_folder_of_no_datasets_is_left_to_pytest(project):
    (project.root / "datasets/data").mkdir(parents=True)
    (project.root / "datasets/data/test_x.py").write_text("def test_one(): pass\n")
    assert project.collect("datasets") == ["datasets/data/test_x.py::test_one"]


def test_a_project_with_datasets_runs_its_own_tests(project):
    project.dataset()
    project.pytester.makepyfile(test_plain="def test_one(): pass\n")
    project.pytester.makepyprojecttoml("[tool.pytest.ini_options]\ntestpaths = ['checks']\n")
    (project.root / "checks").mkdir()
    (project.root / "checks/test_own.py").write_text("def test_two(): pass\n")
    assert project.collect() == ["checks/test_own.py::test_two"]
    assert "test_plain.py::test_one" in project.collect(".")
    assert not [nodeid for nodeid in project.collect(".") if nodeid.startswith("datasets/")]


def test_hostile_entries_of_a_folder_of_datasets_neither_crash_nor_hang(project):
    project.dataset()
    folder = project.root / "datasets"
    os.mkfifo(folder / "fifo")
    (folder / "loop").symlink_to("loop")
    (folder / "file").touch()
    (folder / "closed").mkdir(mode=0)
    assert project.collect("datasets") == OWN + ids("a", "b")
