"""Runs over packed datasets: arguments, node ids and answers are those of folders."""

import shutil

import pytest

from pytest_otval.task.pack import pack
from pytest_otval.task.packed.forms import FILE_OF, Form
from selftests.glue.conftest import ids
from selftests.task.packed.helpers import member, rows, tar

pytest_plugins = ["pytester"]

OWN = ["datasets/demo/dataset.toml::static"]
FORMS = pytest.mark.parametrize("form", Form)


def packed(project, form, **kwargs):
    """Make datasets/demo packed."""
    folders = project.dataset(at=project.root / "unpacked", **kwargs)
    pack(folders, form, project.root / "datasets/demo")
    return project.root / "datasets/demo"


ARGUMENTS = [
    ("datasets/demo", OWN + ids("a", "b")),
    ("datasets/demo/tasks", OWN + ids("a", "b")),
    ("datasets/demo/dataset.toml", OWN),
    ("datasets/demo/tasks/b", ids("b")),
    ("datasets/demo/tasks/b/", ids("b")),
    ("datasets/../datasets/demo/tasks/b", ids("b")),
    ("datasets/demo/tasks/b/task.toml", ids("b")),
    ("datasets/demo/tasks/b/task.toml::noop", ids("b", stages=("noop",))),
    ("datasets/demo/tasks/b::noop", ids("b", stages=("noop",))),
    ("datasets/demo/tasks/b/tests/test_x.py", ids("b")),
]


@FORMS
def test_an_argument_selects(project, form):
    packed(project, form)
    for argument, expected in (*ARGUMENTS, (f"datasets/demo/{FILE_OF[form]}", OWN + ids("a", "b"))):
        assert project.collect(argument) == expected, argument
    assert project.collect("datasets/demo", "-k", "b and oracle") == ids("b", stages=("oracle",))
    assert project.collect("datasets/demo", "--deselect", "datasets/demo/tasks/a") == OWN + ids("b")


@FORMS
def test_from_anywhere(project, form, monkeypatch, tmp_path):
    dataset = packed(project, form)
    monkeypatch.chdir("/")
    assert project.collect(dataset) == OWN + ids("a", "b")
    assert project.collect(dataset / "tasks/a/task.toml") == ids("a")
    assert project.collect(f"{dataset}/tasks/a::noop") == ids("a", stages=("noop",))
    monkeypatch.chdir(dataset)
    assert project.collect() == OWN + ids("a", "b")
    assert project.collect("tasks/a") == ids("a")
    (tmp_path / "linked").symlink_to(dataset)
    assert project.collect(tmp_path / "linked/tasks/a") == ids("a", dataset="linked")


@FORMS
def test_prepared_in_the_workspace(project, form):
    project.dataset(tasks={})
    pack(project.dataset(at=project.root / "unpacked"), form, project.workspace / "datasets/demo")
    assert project.collect("datasets/demo") == OWN + ids("a", "b")
    assert project.collect("datasets/demo/tasks/b") == ids("b")
    assert project.collect(*ids("a"), "datasets/demo") == OWN + ids("a", "b")


@FORMS
def test_without_a_dataset_toml(project, form):
    (packed(project, form) / "dataset.toml").unlink()
    assert project.collect("datasets/demo") == ids("a", "b")
    assert project.collect("datasets/demo/tasks/a") == ids("a")
    assert project.collect(f"datasets/demo/{FILE_OF[form]}") == ids("a", "b")


def test_shards(project):
    rows(project.root / "sharded/data/0.parquet", [("b", tar("task.toml"))])
    rows(project.root / "sharded/data/1.parquet", [("a", tar("task.toml"))])
    assert project.collect("sharded") == ids("a", "b", dataset="sharded")
    assert project.collect("sharded/data/1.parquet") == ids("a", "b", dataset="sharded")


@pytest.mark.parametrize(("form", "workers"), [*((form, "-n0") for form in Form), (Form.PARQUET, "-n2")])
def test_a_run_has_the_ledger_of_folders(project, form, workers):
    tasks = {"a": {"oracle": "wrong-reward of a"}, "b": {"noop": "no-solution"}, "c": {}}
    dataset = packed(project, form, tasks=tasks)
    ledgers = []
    for folder in (dataset, project.root / "unpacked/demo"):
        outcome = project.process(workers, folder)
        assert outcome.status == 1, outcome.lines + outcome.errors
        lines = project.ledger()
        ledgers.append(
            {id: {**line, "time": "", "seconds": {}, "evidence": "", "argument": ""} for id, line in lines.items()}
        )
    assert ledgers[0] == ledgers[1]
    assert len(ledgers[0]) == 13
    assert not list((project.workspace.parent / "scratch").rglob("task.toml"))


def test_a_bad_task_is_a_failure_of_its_own(project):
    good, bad = tar("task.toml"), tar("task.toml", member("../x"))
    rows(project.root / "datasets/demo/tasks.parquet", [("a", good), ("b", bad), ("c", b""), ("d e", good)])
    outcome = project.run("--continue-on-collection-errors", "datasets/demo")
    assert outcome.status == 1
    assert any("task name 'd e': only letters" in line for line in outcome.lines)
    lines = project.ledger()
    assert {lines[id]["verdict"] for id in ids("a")} == {"pass"}
    assert {(lines[id]["class"], lines[id]["headline"]) for id in ids("b")} == {("bad-task", "../x has .. in its path")}
    assert {lines[id]["class"] for id in ids("c")} == {"bad-task"}
    assert not (project.root / "x").exists()


@FORMS
def test_unknown_names_are_refused_with_the_nearest_one(project, form):
    packed(project, form, tasks={"alpha": {}})
    refusal = project.run("datasets/demo/tasks/alhpa").refusal
    assert refusal == "datasets/demo/tasks/alhpa: demo has no task 'alhpa'; did you mean 'alpha'?"
    assert "did you mean 'alpha'?" in project.run("datasets/demo/tasks/alhpa/task.toml::oracle").refusal
    assert "did you mean 'oracle'?" in project.run("datasets/demo/tasks/alpha::orcale").refusal
    assert "nothing else in a dataset is run" in project.run("datasets/demo/wanted.py").refusal
    assert "`-m oracle`" in project.run(f"datasets/demo/{FILE_OF[form]}::oracle").refusal


@FORMS
def test_a_file_that_cannot_be_used_is_one_line(project, form):
    file = packed(project, form) / FILE_OF[form]
    file.write_bytes(file.read_bytes()[:300])
    runs = (("datasets/demo",), ("datasets/demo/tasks/a",), ("-n2", "datasets/demo"))
    for refusal in (project.process(*run).refusal for run in runs):
        assert refusal.startswith(f"datasets/demo/{FILE_OF[form]} cannot be read: ")


def test_two_forms_are_refused(project):
    dataset = packed(project, Form.TAR)
    shutil.copytree(project.root / "unpacked/demo/tasks", dataset / "tasks")
    assert "has its tasks twice: remove tasks.tar, or tasks/" in project.run("datasets/demo").refusal
    assert "has its tasks twice" in project.run("datasets/demo/tasks/a").refusal


def test_a_folder_without_a_task_toml_is_a_warning(project):
    (project.root / "datasets/demo").mkdir(parents=True)
    (project.root / "datasets/demo/tasks.tar").write_bytes(tar("a/task.toml", "forgotten/x"))
    outcome = project.run("datasets/demo")
    assert outcome.counts == {"passed": 4, "warning": 1}
    assert any("the folder 'forgotten' has no task.toml" in line for line in outcome.lines)
