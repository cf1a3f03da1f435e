"""What patches may do to a task, and what is an error of theirs."""

import os

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.sources.editor import PatchError, TaskEditor, set_in
from pytest_otval.sources.patches import Patch, apply, checked, in_order, unused
from selftests.checks.conftest import write_task


@pytest.fixture
def task(tmp_path):
    write_task(tmp_path / "one", {"notes.txt": "wrong\n"})
    return TaskEditor(tmp_path / "one", "data")


def patch(id="spelling", old="wrong", new="right", path="notes.txt", **more):
    return Patch(id, "spelling", lambda task: task.replace(path, old, new), lambda task: old in task.text(path), **more)


def test_a_patch_is_applied_where_it_is_needed_and_recorded(task):
    outcome = apply(task, [patch()])
    assert (outcome.applied, outcome.trouble) == (["spelling"], [])
    assert task.text("notes.txt") == "right\n"
    assert 'spelling = "spelling"' in task.text("task.toml")
    assert task.text("task.toml").startswith('schema_version = "1.4"\n[agent]')
    assert apply(task, [patch()]).applied == []


def test_a_task_that_needs_nothing_stays_as_it_is(task):
    before = task.content()
    assert apply(task, [patch(old="absent")]).applied == []
    assert task.content() == before


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (Patch("p", "f", lambda task: None, lambda task: True), "p: changes nothing"),
        (Patch("p", "f", lambda task: task.write("x", "x"), lambda task: True), "p: is still needed after it"),
        (patch("p", old="absent", tasks=("one",)), "p: is no longer needed"),
        (Patch("p", "f", lambda task: task.replace("notes.txt", "no", "x"), lambda task: True), "stands there 0 times"),
        (Patch("p", "f", lambda task: task.remove("absent"), lambda task: True), "there is no absent"),
        (Patch("p", "f", lambda task: task.write("../x", "x"), lambda task: True), "is no path within a task"),
        (Patch("p", "f", lambda task: task.write("/x", "x"), lambda task: True), "is no path within a task"),
    ],
)
def test_what_is_wrong_with_a_patch_is_told(task, wrong, words):
    outcome = apply(task, [wrong])
    assert outcome.applied == []
    assert words in outcome.trouble[0]


def test_two_patches_of_one_file_conflict_unless_one_says_so(task):
    first, second = patch(), patch("again", old="right", new="better")
    assert "conflicts with spelling: both change notes.txt" in apply(task, [first, second]).trouble[0]


def test_a_patch_that_comes_after_another_may_change_its_files(task):
    outcome = apply(task, [patch(), patch("again", old="right", new="better", after=("spelling",))])
    assert outcome.applied == ["spelling", "again"]
    assert task.text("notes.txt") == "better\n"


def test_a_patch_for_other_tasks_is_left_out(task):
    assert apply(task, [patch(tasks=("two",))]).applied == []


def test_names_of_patches_are_checked():
    for wrong in ([patch("a"), patch("a")], [patch("a b")], [patch("a", after=("b",)), patch("b")]):
        with pytest.raises(OtvalUsageError):
            checked(wrong)


def test_a_patch_that_no_task_needs_is_told():
    assert unused([patch("a"), patch("b")], {"a": 3})[0].startswith("b: no task needs it")


def test_a_patch_that_fails_leaves_the_task_as_it_was(task):
    def change(editor):
        editor.write("notes.txt", "new\n")
        editor.write("notes.txt", "newer\n", executable=True)
        editor.write("deep/down/new.txt", "new\n")
        editor.remove("instruction.md")
        editor.make_executable("task.toml")
        editor.replace("notes.txt", "absent", "x")

    os.mkfifo(task.folder / "pipe")
    (task.folder / "link").symlink_to("notes.txt")
    before = task.content()
    assert "stands there 0 times" in apply(task, [Patch("p", "f", change, lambda task: True)]).trouble[0]
    assert task.content() == before
    over = Patch("p", "f", lambda task: [task.write(path, "x") for path in ("pipe", "link")], lambda task: True)
    assert "is still needed" in apply(task, [over]).trouble[0]
    assert task.content() == before
    assert [path.name for path in task.folder.parent.iterdir()] == ["one"]


def test_a_patch_that_conflicts_is_taken_back(task):
    apply(task, [patch(), patch("again", old="right", new="better")])
    assert task.text("notes.txt") == "right\n"


def test_a_folder_is_no_file(task):
    for change in (lambda task: task.write("tests", "x"), lambda task: task.remove("tests")):
        assert "tests is a folder" in apply(task, [Patch("p", "f", change, lambda task: True)]).trouble[0]


def test_patches_in_order_may_change_each_others_files(task):
    first, second, third = in_order(
        [patch(), patch("b", old="right", new="better"), patch("c", old="better", new="best")]
    )
    assert (first.after, second.after, third.after) == ((), ("spelling",), ("spelling", "b"))
    assert apply(task, checked([first, second, third])).applied == ["spelling", "b", "c"]


def test_a_patch_may_be_for_some_tasks_alone(task):
    assert apply(task, [patch().only("two")]).applied == []
    assert apply(task, [patch().only("one")]).applied == ["spelling"]


def test_links_and_pipes_of_a_task_are_not_followed(task, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (task.folder / "away").symlink_to(outside)
    (task.folder / "link").symlink_to(outside / "secret")
    os.mkfifo(task.folder / "pipe")
    assert task.text("link") == task.text("pipe") == ""
    for path in ("away/secret", "away/new"):
        with pytest.raises(PatchError, match="behind what is no folder"):
            task.write(path, "x")
    task.write("link", "own")
    task.write("pipe", "own")
    assert (outside / "secret").read_text() == "secret"
    assert task.text("link") == task.text("pipe") == "own"
    (task.folder / "binary").write_bytes(b"\xff")
    with pytest.raises(PatchError, match="no UTF-8"):
        task.text("binary")


def test_toml_keeps_its_comments(task):
    task.write("task.toml", "# mine\n[agent]\ntimeout_sec = 60 # a minute\n")
    with task.toml() as document:
        set_in(document, "environment.cpus", 2)
    assert task.text("task.toml") == "# mine\n[agent]\ntimeout_sec = 60 # a minute\n\n[environment]\ncpus = 2\n"
    task.write("task.toml", "no toml")
    with pytest.raises(PatchError, match="is no TOML"), task.toml():
        pass


def test_a_task_without_a_readable_toml_is_patched_without_a_record(task):
    task.write("task.toml", "no toml")
    assert apply(task, [patch()]).applied == ["spelling"]
