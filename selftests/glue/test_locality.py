"""What is known of a task from bytes alone and from earlier runs; task files are hostile."""

import os

import pytest

from pytest_otval.glue.locality import Outlooks, image_hint
from pytest_otval.glue.selection import DatasetSelection
from pytest_otval.history import learn

KEY = "0" * 64


@pytest.fixture
def task(tmp_path):
    """Return a function that writes a task."""

    def make(name, dockerfile=None, toml=""):
        folder = tmp_path / "set" / "tasks" / name
        (folder / "environment").mkdir(parents=True)
        (folder / "task.toml").write_bytes(toml.encode("utf-8", "surrogateescape"))
        if dockerfile is not None:
            (folder / "environment" / "Dockerfile").write_text(dockerfile)
        return folder

    return make


def test_equal_dockerfiles(task):
    one, two, other = (
        image_hint(task(name, text), False) for name, text in (("a", "FROM x"), ("b", "FROM x"), ("c", ""))
    )
    assert one == two != ""
    assert other == ""
    assert image_hint(task("d", "FROM y"), False) not in ("", one)


@pytest.mark.parametrize(
    "line", ['docker_image = "a/b:1"', "  docker_image='a/b:1' # x", '[environment]\ndocker_image\t=\t"a/b:1"\n']
)
def test_named_image(task, line):
    folder = task("a", "FROM x", line)
    assert image_hint(folder, False) == "image:a/b:1"
    assert image_hint(folder, True).startswith("dockerfile:")


@pytest.mark.parametrize("line", ['# docker_image = "a"', 'my_docker_image = "a"', "docker_image = 3", "\udcff\x00"])
def test_no_named_image(task, line):
    assert image_hint(task("a", "FROM x", line), False).startswith("dockerfile:")


def test_nothing_is_followed_or_waited_for(task, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "Dockerfile").write_text("FROM x")
    linked_file, linked_folder, fifo, folder = (task(name) for name in "abcd")
    (linked_file / "environment" / "Dockerfile").symlink_to(outside / "Dockerfile")
    (linked_folder / "environment").rmdir()
    (linked_folder / "environment").symlink_to(outside)
    os.mkfifo(fifo / "environment" / "Dockerfile")
    (fifo / "task.toml").unlink()
    os.mkfifo(fifo / "task.toml")
    (folder / "environment" / "Dockerfile").mkdir()
    assert [image_hint(one, False) for one in (linked_file, linked_folder, fifo, folder)] == [""] * 4
    assert image_hint(tmp_path / "nothing", False) == ""


def test_large_files_tell_nothing(task):
    folder = task("a", "FROM x")
    os.truncate(folder / "environment" / "Dockerfile", 2**40)
    assert image_hint(folder, False) == ""


def outlooks(tmp_path, path):
    return Outlooks({"set": DatasetSelection(path)}, tmp_path / "workspace")


def answer(task, stage, seconds, key=KEY):
    id = f"datasets/set/tasks/{task}/task.toml::{stage}"
    return {"id": id, "stage": stage, "verdict": "pass", "seconds": {"total": seconds}, "image_key": key}


def test_history_tells_times_and_whether_the_image_is_there(task, tmp_path):
    task("a", "FROM x")
    learn(tmp_path / "workspace" / "history", [answer("a", "oracle", 2.5)])
    before = outlooks(tmp_path, tmp_path / "set").get("set", "a", True)
    assert before.image.startswith("dockerfile:")
    assert (before.ready, before.seconds) == (False, {"oracle": 2.5})
    (tmp_path / "workspace" / "images").mkdir()
    (tmp_path / "workspace" / "images" / f"{KEY}.json").touch()
    assert outlooks(tmp_path, tmp_path / "set").get("set", "a", True).ready


def test_of_a_packed_task_history_tells_the_image(tmp_path):
    (tmp_path / "packed").mkdir()
    learn(tmp_path / "workspace" / "history", [answer("a", "build", 1.0), answer("b", "build", 1.0, "../../x")])
    known = outlooks(tmp_path, tmp_path / "packed")
    assert known.get("set", "a", True).image == KEY
    assert not known.get("set", "b", True).ready
    assert known.get("set", "c", True).image == ""
