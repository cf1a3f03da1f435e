"""What arguments select, from anywhere."""

import os
import shutil

import pytest

from pytest_otval.glue.selection import split
from selftests.glue.conftest import ids

pytest_plugins = ["pytester"]

OWN = ["datasets/demo/dataset.toml::static"]


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("datasets/demo", OWN + ids("a", "b")),
        ("datasets/demo/", OWN + ids("a", "b")),
        ("datasets/demo/tasks", OWN + ids("a", "b")),
        ("datasets/demo/dataset.toml", OWN),
        ("datasets/demo/dataset.toml::static", OWN),
        ("datasets/demo/tasks/b", ids("b")),
        ("datasets/../datasets/demo/tasks/b", ids("b")),
        ("datasets/demo/tasks/b/task.toml", ids("b")),
        ("datasets/demo/tasks/b/task.toml::noop", ids("b", stages=("noop",))),
        ("datasets/demo/tasks/b::noop", ids("b", stages=("noop",))),
        ("datasets/demo/tasks/b/wanted", ids("b")),
        ("datasets/demo/tasks/b/tests/test_x.py", ids("b")),
    ],
)
def test_an_argument_selects(project, argument, expected):
    dataset = project.dataset()
    (dataset / "tasks/b/tests").mkdir()
    (dataset / "tasks/b/tests/test_x.py").write_text("raise RuntimeError('imported on the host')")
    assert project.collect(argument) == expected


def test_arguments_add_up_and_the_order_is_that_of_names_and_stages(project):
    project.dataset("zoo", {"z": {}})
    project.dataset()
    b_noop, b_oracle = ids("b", stages=("noop", "oracle"))
    arguments = ["datasets/zoo/tasks/z", b_noop, b_oracle, b_noop, "datasets/demo/tasks/a"]
    expected = [*ids("a"), b_oracle, b_noop, *ids("z", dataset="zoo")]
    assert project.collect(*arguments) == project.collect(*reversed(arguments)) == expected


def test_a_task_as_a_whole_and_one_stage_of_it_is_the_whole(project):
    project.dataset()
    assert project.collect("datasets/demo/tasks/a", *ids("a", stages=("noop",))) == ids("a")
    assert project.collect(*ids("a", stages=("noop",)), "datasets/demo/tasks/a") == ids("a")


def test_node_ids_are_found_from_another_folder_below_the_rootdir(project, monkeypatch):
    project.dataset()
    project.pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    elsewhere = project.root / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert project.collect(*ids("a")) == ids("a")


def test_node_ids_are_found_in_the_workspace(project):
    project.dataset(at=project.workspace / "datasets")
    assert project.collect(*ids("a")) == ids("a")
    assert project.collect("datasets/demo") == OWN + ids("a", "b")


def test_a_dataset_that_is_prepared_in_the_workspace_only(project):
    project.dataset(tasks={})
    project.dataset(at=project.workspace / "datasets")
    assert project.collect("datasets/demo") == OWN + ids("a", "b")
    assert project.collect("datasets/demo", *ids("a")) == OWN + ids("a", "b")


@pytest.mark.parametrize("folder", ["bare/tasks", "bare"])
@pytest.mark.parametrize("cwd", ["/", "."])
def test_tasks_without_a_dataset_toml(project, monkeypatch, folder, cwd):
    for name in ("a", "b"):
        project.task(project.root / folder / name)
    monkeypatch.chdir(cwd)
    assert project.collect(project.root / "bare") == ids("a", "b", dataset="bare")
    assert project.collect(project.root / folder / "a") == ids("a", dataset="bare")
    assert project.collect(f"{project.root / folder / 'a'}/task.toml::noop") == ids(
        "a", dataset="bare", stages=("noop",)
    )


def test_a_linked_dataset_goes_by_the_name_of_the_link(project):
    real = project.dataset("real", at=project.root / "elsewhere")
    (project.root / "datasets").mkdir()
    (project.root / "datasets/demo").symlink_to(real)
    assert project.collect("datasets/demo") == OWN + ids("a", "b")
    assert project.collect(*ids("a")) == ids("a")


def test_a_link_into_a_task_selects_the_task(project):
    task = project.dataset() / "tasks/a"
    (task / "tests").mkdir()
    (task / "tests/test_x.py").write_text("raise RuntimeError('imported on the host')")
    (project.root / "shortcut").symlink_to(task / "tests")
    assert project.collect("shortcut") == ids("a")
    assert project.collect(".") == []


@pytest.mark.parametrize(
    ("cwd", "expected"),
    [
        ("datasets/demo", OWN + ids("a", "b")),
        ("datasets/demo/tasks", OWN + ids("a", "b")),
        ("datasets/demo/tasks/b", ids("b")),
        ("datasets/demo/tasks/b/wanted", ids("b")),
    ],
)
def test_without_an_argument_the_current_folder_selects(project, monkeypatch, cwd, expected):
    project.dataset(tasks={"a": {}, "b": {"oracle": "expected"}})
    monkeypatch.chdir(project.root / cwd)
    assert project.collect() == expected


def test_choice_by_words_and_marks(project):
    project.dataset(tasks={"alpha": {}, "beta": {}})
    assert project.collect("datasets/demo", "-k", "beta") == ids("beta")
    assert project.collect("datasets/demo", "-k", "alpha and oracle") == ids("alpha", stages=("oracle",))
    assert project.collect("datasets/demo", "-m", "oracle") == ids("alpha", "beta", stages=("oracle",))
    both = ids("alpha", "beta", stages=("oracle", "noop"))
    assert project.collect("datasets/demo", "-m", "oracle or noop") == both
    others = [*ids("beta")[1:], *ids("beta", stages=("adversary", "hermetic"))]
    assert project.collect("datasets/demo/tasks/beta", "-m", "not static") == others
    without = [*OWN, *ids("alpha")[1:], *ids("beta")]
    assert project.collect("datasets/demo", "--deselect", ids("alpha")[0]) == without
    assert project.collect("datasets/demo", "--deselect", "datasets/demo/tasks/alpha") == OWN + ids("beta")


def test_with_ordinary_tests(project):
    project.dataset()
    project.pytester.makepyfile(test_plain="def test_one(): pass\n")
    assert project.collect("test_plain.py", "datasets/demo/tasks/a") == [*ids("a"), "test_plain.py::test_one"]
    assert project.collect("test_plain.py") == ["test_plain.py::test_one"]
    assert project.collect("-m", "oracle", "test_plain.py", "datasets/demo/tasks/a") == ids("a", stages=("oracle",))


def test_pytest_does_not_find_datasets_on_its_way(project):
    dataset = project.dataset()
    for folder in (dataset, dataset / "tasks/a"):
        (folder / "test_x.py").write_text("raise RuntimeError('imported on the host')")
    project.pytester.makepyfile(test_plain="def test_one(): pass\n")
    assert project.collect(".") == ["test_plain.py::test_one"]


def test_unknown_names_are_refused_with_the_nearest_one(project):
    project.dataset(tasks={"alpha": {}})
    refusal = project.run("datasets/demo/tasks/alhpa").refusal
    assert refusal == "datasets/demo/tasks/alhpa: demo has no task 'alhpa'; did you mean 'alpha'?"
    assert "did you mean 'alpha'?" in project.run("datasets/demo/tasks/alhpa/task.toml::oracle").refusal
    assert "did you mean 'oracle'?" in project.run("datasets/demo/tasks/alpha/task.toml::orcale").refusal
    assert "there is no stage 'oracle'" in project.run("datasets/demo/dataset.toml::oracle").refusal
    assert "nothing else in a dataset is run" in project.run("datasets/demo/wanted.py").refusal
    assert "`-m oracle`" in project.run("datasets/demo::oracle").refusal


def test_python_files_of_a_dataset_are_refused(project):
    (project.dataset() / "test_x.py").write_text("raise RuntimeError('imported on the host')")
    assert "nothing else in a dataset is run" in project.run("datasets/demo/test_x.py").refusal


def test_what_is_no_dataset_is_left_to_pytest(project):
    project.dataset()
    assert "file or directory not found: nowhere/test_x.py" in project.run("nowhere/test_x.py").refusal


def test_an_unprepared_dataset_is_refused_with_the_commands(project):
    dataset = project.dataset(tasks={})
    assert project.run("datasets/demo").refusal == ("dataset demo is not prepared: it has no tasks and no patch.py")
    (dataset / "patch.py").touch()
    assert project.run("datasets/demo").refusal == (
        "dataset demo is not prepared: run `python datasets/demo/patch.py fetch` and "
        "`python datasets/demo/patch.py prepare`"
    )


def test_settings_that_changed_since_the_dataset_was_prepared_are_not_overlooked(project, tmp_path, monkeypatch):
    workspace = tmp_path / "ws"
    monkeypatch.setenv("OT_WORKSPACE", str(workspace))
    prepared = project.dataset("demo")
    shutil.copytree(prepared, workspace / "datasets" / "demo")
    shutil.rmtree(prepared / "tasks")
    (prepared / "patch.py").touch()
    with (workspace / "datasets" / "demo" / "dataset.toml").open("a") as file:
        file.write('[otval.runtimes]\npython-0123456789ab = "sha256:00"\n')
    assert project.run("datasets/demo", "--co").status == 0
    with (prepared / "dataset.toml").open("a") as file:
        file.write("noop_max = 0.5\n")
    assert project.run("datasets/demo", "--co").refusal == (
        "dataset.toml of demo was changed since it was prepared: run `python datasets/demo/patch.py prepare`"
    )


def test_two_datasets_of_one_name_are_refused(project):
    project.dataset()
    project.dataset(at=project.root / "other")
    assert "two datasets are called demo" in project.run("datasets/demo", "other/demo").refusal


def test_a_dataset_whose_name_cannot_stand_in_a_node_id_is_refused(project):
    project.dataset("my set")
    assert "rename it" in project.run("datasets/my set").refusal


def test_a_missing_workspace_is_refused(project, monkeypatch):
    project.dataset()
    monkeypatch.delenv("OT_WORKSPACE")
    assert "OT_WORKSPACE is not set: run ./setup.sh" in project.run("datasets/demo").refusal
    monkeypatch.setenv("OT_WORKSPACE", "/nowhere/at/all")
    assert "is no folder" in project.run("datasets/demo").refusal


def test_a_refusal_is_one_line_with_workers_too(project):
    project.dataset()
    outcome = project.process("-n2", "datasets/demo/tasks/none")
    assert "has no task 'none'" in outcome.refusal
    assert not any("gw" in line or "INTERNAL" in line for line in outcome.lines + outcome.errors)


def test_hostile_entries_of_a_dataset_neither_crash_nor_hang(project):
    tasks = project.dataset() / "tasks"
    os.mkfifo(tasks / "fifo")
    (tasks / "loop").symlink_to("loop")
    (tasks / "c").mkdir()
    os.mkfifo(tasks / "c/task.toml")
    assert project.collect("datasets/demo") == OWN + ids("a", "b", "c")
    assert project.run("datasets/demo/tasks/c").status == 1


def test_split_takes_nothing_from_what_is_not_there(tmp_path):
    assert split(["x", "--y", "", "a::b"], tmp_path, [], ()) == ({}, ["x", "--y", "", "a::b"])
