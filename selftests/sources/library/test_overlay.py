"""A folder of files that is laid over tasks."""

import hashlib
import os

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.sources import library
from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.patches import apply
from selftests.checks.conftest import SOUND, write_task

TEST = "tests/test_outputs.py"


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "files"
    (folder / "tests").mkdir(parents=True)
    (folder / TEST).write_text("def test_it():\n    assert False\n")
    (folder / "tests" / "run").write_bytes(b"\x7fELF\xff")
    (folder / "tests" / "run").chmod(0o755)
    return folder


@pytest.fixture
def task(tmp_path):
    write_task(tmp_path / "task", {})
    return TaskEditor(tmp_path / "task", "data")


def test_files_are_replaced_and_added_once(task, files):
    patch = library.overlay("better-tests", "weak-tests", files)
    assert apply(task, [patch]).applied == ["better-tests"]
    assert task.data("tests/run") == b"\x7fELF\xff"
    assert task.is_executable("tests/run")
    assert not task.is_executable(TEST)
    assert 'better-tests = "weak-tests"' in task.text("task.toml")
    assert apply(task, [patch]).applied == []
    only = library.overlay("better-tests", "weak-tests", files, tasks=["task"])
    assert "is no longer needed" in apply(task, [only]).trouble[0]


def test_a_file_that_its_source_changed_is_not_covered(task, files):
    digest = hashlib.sha256(SOUND[TEST].encode()).hexdigest()
    patch = library.overlay("better-tests", "weak-tests", files, replaces={TEST: digest})
    task.write(TEST, "def test_new():\n    assert True\n")
    before = task.content()
    assert "the source changed" in apply(task, [patch]).trouble[0]
    assert task.content() == before
    task.write(TEST, SOUND[TEST])
    assert apply(task, [patch]).applied == ["better-tests"]


def test_it_conflicts_as_others_do(task, files):
    patches = [library.overlay("a", "f", files), library.overlay("b", "f", files)]
    assert apply(task, patches).applied == ["a"]


def test_what_is_laid_over_is_part_of_the_recipe(files):
    before = library.overlay("a", "f", files).inputs()
    assert library.overlay("a", "f", files).inputs() == before
    (files / TEST).write_text("")
    assert library.overlay("a", "f", files).inputs() != before


def test_folders_that_are_none_are_refused(files, tmp_path):
    with pytest.raises(OtvalUsageError, match="has no files"):
        library.overlay("a", "f", tmp_path / "absent")
    with pytest.raises(OtvalUsageError, match="which is to be replaced"):
        library.overlay("a", "f", files, replaces={"absent": "0"})
    (files / "link").symlink_to("/etc/passwd")
    with pytest.raises(OtvalUsageError, match="is no plain file"):
        library.overlay("a", "f", files)
    (files / "link").unlink()
    os.mkfifo(files / "pipe")
    with pytest.raises(OtvalUsageError, match="is no plain file"):
        library.overlay("a", "f", files)


def test_links_of_a_task_are_not_followed(task, files, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (task.folder / "tests" / "run").symlink_to(outside / "run")
    assert apply(task, [library.overlay("a", "f", files)]).applied == ["a"]
    assert list(outside.iterdir()) == []
    assert not (task.folder / "tests" / "run").is_symlink()
