"""Datasets and tasks by their names on disk."""

import os

import pytest

from pytest_otval.task.index import enclosing_dataset, is_dataset, is_prepared, owner_of, task_names, tasks_folder


@pytest.fixture
def root(tmp_path):
    for task in ("set/tasks/a", "set/tasks/b/tests", "bare/a", "repository/tasks/a", "lone"):
        (tmp_path / task).mkdir(parents=True)
    for file in (
        "set/dataset.toml",
        "set/tasks/a/task.toml",
        "set/tasks/b/task.toml",
        "bare/a/task.toml",
        "repository/tasks/a/task.toml",
        "lone/task.toml",
    ):
        (tmp_path / file).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("path", "owner", "dataset"),
    [
        ("set", "set", "set"),
        ("set/tasks", "set", "set"),
        ("set/tasks/b", "set", "set"),
        ("set/tasks/b/tests/none", "set", "set"),
        ("set/nowhere", "set", "set"),
        ("bare", None, "bare"),
        ("bare/a", "bare/a", "bare"),
        ("bare/nowhere", None, None),
        ("repository", None, "repository"),
        ("repository/tasks", None, "repository"),
        ("repository/tasks/a/task.toml", "repository/tasks/a", "repository"),
        ("repository/docs", None, None),
        ("lone/task.toml", "lone", "."),
        (".", None, "."),
    ],
)
def test_whose_a_path_is(root, path, owner, dataset):
    assert owner_of(root / path) == (None if owner is None else root / owner)
    assert enclosing_dataset(root / path) == (None if dataset is None else root / dataset)


def test_tasks_lie_in_their_folder_or_right_in_the_dataset(root):
    assert tasks_folder(root / "set") == root / "set/tasks"
    assert tasks_folder(root / "bare") == root / "bare"


def test_names_are_sorted_and_folders_that_are_no_task_are_told_in_tasks_only(root):
    for folder in ("set/tasks/zoo", "set/tasks/.git", "bare/docs"):
        (root / folder).mkdir()
    (root / "set/tasks/file").touch()
    assert task_names(root / "set") == (["a", "b"], ["zoo"])
    assert task_names(root / "bare") == (["a"], [])


def test_a_dataset_without_its_tasks_is_not_prepared(tmp_path):
    (tmp_path / "dataset.toml").touch()
    assert is_dataset(tmp_path)
    assert not is_prepared(tmp_path)
    assert task_names(tmp_path) == ([], [])


def test_what_cannot_be_looked_at_is_none(root):
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "fifo")
    for path in (root / "loop", root / "fifo", root / ("x" * 300), root / "loop/x", root / "fifo/x"):
        assert not is_dataset(path)
        assert not is_prepared(path)
    (root / "bare/loop").symlink_to("loop")
    assert task_names(root / "bare") == (["a"], [])


def test_a_task_called_tasks_is_one_among_others(tmp_path):
    for name in ("tasks", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "task.toml").touch()
    assert tasks_folder(tmp_path) == tmp_path
    assert task_names(tmp_path)[0] == ["other", "tasks"]
