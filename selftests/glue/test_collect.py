"""Nodes of tasks, and what does not become one."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.core import NAME, node_id
from pytest_otval.glue.recording import NODE_ID
from selftests.glue.conftest import ids

pytest_plugins = ["pytester"]

STAGES = ("static", "build", "oracle", "noop")


@pytest.mark.parametrize("name", ["a b", "a[1]", "x::y", "naïve", "line\nbreak", "a@b", "\udcff"])
def test_a_name_that_cannot_stand_in_a_node_id_is_an_error_that_names_it(project, name):
    dataset = project.dataset(tasks={"fine": {}})
    project.task(dataset / "tasks" / name)
    outcome = project.run("datasets/demo")
    assert outcome.status == 2
    assert any(f"task name {name!r}: only letters" in line for line in outcome.lines)


@pytest.mark.parametrize("option", ["-n2", "--continue-on-collection-errors"])
def test_where_the_run_goes_on_it_is_told_once_and_not_forgotten(project, option):
    """xdist's workers always go on."""
    dataset = project.dataset(tasks={"fine": {}})
    project.task(dataset / "tasks/a b")
    outcome = project.process(option, "datasets/demo")
    assert (outcome.status, outcome.counts) == (1, {"error": 1, "passed": 5})


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_folder_without_a_task_toml_is_a_warning(project, workers):
    dataset = project.dataset()
    (dataset / "tasks/forgotten").mkdir()
    (dataset / "tasks/.hidden").mkdir()
    (dataset / "tasks/README.md").touch()
    outcome = project.process(workers, "-Werror", "datasets/demo")
    assert outcome.status == 0
    assert outcome.counts.keys() == {"passed", "warning"}
    assert any("demo: the folder 'forgotten' has no task.toml and is no task" in line for line in outcome.lines)
    assert not any("hidden" in line for line in outcome.lines)


def test_folders_beside_tasks_without_a_tasks_folder_are_no_matter(project):
    project.task(project.root / "bare/a")
    (project.root / "bare/docs").mkdir()
    outcome = project.run("bare")
    assert (outcome.status, outcome.counts) == (0, {"passed": 4})


def test_the_tree_has_a_node_for_dataset_task_and_stage(project):
    project.dataset(tasks={"a": {}})
    lines = project.run("--co", "datasets/demo").lines
    tree = [line for line in lines if "<" in line]
    assert tree == [
        "<DatasetNode demo>",
        "  <DatasetItem static>",
        "  <TaskNode a>",
        *(f"    <StageItem {stage}>" for stage in STAGES),
    ]


def test_ids_are_the_same_from_anywhere(project, monkeypatch):
    dataset = project.dataset()
    here = project.collect("datasets/demo")
    for cwd, options in [("/", []), (dataset / "tasks/a", []), (project.root, ["--rootdir", str(dataset)])]:
        monkeypatch.chdir(cwd)
        assert project.collect(*options, dataset) == here
        assert project.run(*options, dataset / "tasks/b").status == 0
        assert list(project.ledger()) == ids("b")


NAMES = st.from_regex(NAME, fullmatch=True)


@given(NAMES, st.none() | NAMES, NAMES)
def test_a_node_id_is_taken_apart_as_it_was_made(dataset, task, stage):
    found = NODE_ID.fullmatch(node_id(dataset, task, stage))
    assert (found["dataset"], found["task"], found["stage"]) == (dataset, task, stage)


def test_collecting_does_not_read_tasks(project):
    dataset = project.dataset()
    for task in ("a", "b"):
        (dataset / "tasks" / task / "task.toml").unlink()
        os.mkfifo(dataset / "tasks" / task / "task.toml")
    assert project.collect("datasets/demo/tasks") == ["datasets/demo/dataset.toml::static", *ids("a", "b")]


KNOWN_BAD = '[otval.known_bad.{}]\nreason = "r"\nowner = "o"\nexpires = 2999-01-01\nstages = [{}]\n'


@pytest.mark.parametrize(
    ("task", "stages", "said"),
    [
        ("alhpa", '"oracle"', "demo: known_bad names 'alhpa', which is no task of it; did you mean 'alpha'?"),
        ("zzz", '"oracle"', "demo: known_bad names 'zzz', which is no task of it"),
        (
            "alpha",
            '"oracle", "nop"',
            "demo: known_bad of 'alpha' names 'nop', which is no stage; did you mean 'noop'?",
        ),
        ("alpha", '"oracle", "noop"', None),
    ],
)
@pytest.mark.parametrize("argument", ["datasets/demo", "datasets/demo/tasks/beta", "datasets/demo -m static"])
def test_a_record_of_a_bad_task_that_has_no_effect_is_a_warning(project, task, stages, said, argument):
    project.dataset(tasks={"alpha": {}, "beta": {}}, otval=KNOWN_BAD.format(task, stages))
    lines = project.run("--co", "-Werror", *argument.split()).lines
    warnings = [line.partition("PytestCollectionWarning: ")[2] for line in lines if "Warning" in line]
    assert warnings == ([said] if said else [])


@pytest.mark.parametrize("key", ["known_bad", r'"known\u005fbad"'])
def test_known_bad_is_found_however_its_key_is_written(project, key):
    text = KNOWN_BAD.format("a", '"oracle"').replace("known_bad", key)
    project.dataset(tasks={"a": {"oracle": "wrong-reward"}}, otval=text)
    assert project.run("datasets/demo").counts == {"passed": 4, "xfailed": 1}


def test_a_manifest_without_known_bad_is_not_parsed_for_a_listing(project, monkeypatch):
    """A published one lists 50,000 tasks."""
    project.dataset()
    monkeypatch.setattr("pytest_otval.glue.collect.load_dataset", None)
    assert project.collect("datasets/demo/tasks") == ["datasets/demo/dataset.toml::static", *ids("a", "b")]


def test_a_task_beside_the_folder_of_tasks_is_a_warning(project):
    dataset = project.dataset()
    project.task(dataset / "c")
    outcome = project.run("-Werror", "datasets/demo")
    assert outcome.counts == {"passed": 9, "warning": 1}
    assert any("demo: the task 'c' lies beside tasks/ and is left out: move it there" in line for line in outcome.lines)


def test_each_id_is_made_as_node_id_makes_it(project):
    project.dataset("a-b.c_d", {"e.f-g_h": {}})
    expected = [
        node_id("a-b.c_d", task, stage) for task, stage in [(None, "static"), *(("e.f-g_h", s) for s in STAGES)]
    ]
    assert project.collect("datasets") == expected
    assert project.run("datasets").status == 0
    assert list(project.ledger()) == expected


def test_a_stage_that_does_not_run_by_default_runs_where_it_is_named(project):
    project.dataset()
    (project.root / "more.py").write_text(
        "from pytest_otval.stages.spec import Stage\n"
        "def pytest_otval_stages(): return [Stage('extra', 'otval_stub:static', 'more?')]\n"
    )
    project.pytester.syspathinsert()
    assert "::extra" not in "".join(project.collect("-p", "more", "datasets/demo"))
    assert project.collect("-p", "more", "datasets/demo/tasks/a/task.toml::extra") == ids("a", stages=("extra",))
    assert project.collect("-p", "more", "datasets/demo", "-m", "extra") == ids("a", "b", stages=("extra",))


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_tasks_come_in_the_order_of_names_on_every_machine(project, workers):
    names = ["b", "a", "B", "a-1", "a.1", "a10", "a2", "_x"]
    project.dataset(tasks={name: {} for name in names})
    assert project.process(workers, "datasets/demo", "-m", "static").status == 0
    assert project.collect("datasets/demo/tasks", "-m", "noop") == ids(*sorted(names), stages=("noop",))
