"""tasks.sqfs: images of mksquashfs in all its ways, and images that are wrong."""

import os
import random
import socket
import subprocess
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.task.digest import task_digest
from pytest_otval.task.packed import image as module
from pytest_otval.task.packed.image import Image
from pytest_otval.task.packed.unpack import Kind
from pytest_otval.task.source import source_of
from selftests.task.packed.helpers import refusal, tree


def image(folder: Path, dataset: Path, *options: str) -> Path:
    """Make tasks.sqfs of what lies in a folder."""
    dataset.mkdir(exist_ok=True)
    target = dataset / "tasks.sqfs"
    argv = ["mksquashfs", str(folder), str(target), "-quiet", "-no-progress", "-noappend", "-processors", "1", *options]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return target


def task(folder: Path, **files: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "task.toml").touch()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def tasks(tmp_path):
    """Files below, at and above the size of a block, with and without holes; links, FIFOs, hard links."""
    noise = random.Random(1).randbytes
    sizes = {"empty": 0, "small": 100, "block": 4096, "more": 4097, "large": 131072 * 3 + 5, "whole": 131072 * 2}
    first = task(tmp_path / "tasks/first", **{name: noise(size) for name, size in sizes.items()})
    with (first / "holes").open("wb") as file:
        file.seek(131072 * 2)
        file.write(b"x" * 10)
        file.truncate(131072 * 5 + 7)
    second = task(tmp_path / "tasks/second", text=b"abc" * 50_000)
    (second / "empty folder").mkdir()
    (second / "link").symlink_to("/etc/passwd")
    (second / "run").write_text("#!/bin/sh")
    (second / "run").chmod(0o4711)
    os.mkfifo(second / "pipe")
    os.link(second / "run", second / "again")
    (second / "many").mkdir()
    for number in range(700):
        (second / "many" / f"{number:03}-{'x' * 30}").write_text(str(number))
    (tmp_path / "tasks/docs").mkdir()
    (tmp_path / "tasks/.hidden").mkdir()
    task(tmp_path / "tasks/.hidden")
    (tmp_path / "tasks/README").touch()
    (tmp_path / "tasks/to-first").symlink_to("first")
    return tmp_path / "tasks"


WAYS = [
    *(("-comp", name) for name in ("gzip", "xz", "zstd")),
    ("-comp", "xz", "-Xbcj", "x86"),
    ("-b", "4096"),
    ("-b", "1M"),
    ("-no-fragments",),
    ("-always-use-fragments",),
    ("-noI", "-noD", "-noF"),
    ("-no-sparse", "-no-exports", "-all-root"),
]


@pytest.mark.parametrize("options", WAYS, ids=" ".join)
def test_tasks_are_what_was_packed(tasks, tmp_path, options):
    source = source_of(image(tasks, tmp_path / "set", *options).parent)
    assert source.names() == (["first", "second"], ["docs"])
    assert source.anchor("first") == tmp_path / "set/tasks.sqfs"
    for name in ("second", "first", "second"):
        assert task_digest(source.folder(name, tmp_path / "scratch")) == task_digest(tasks / name)
    unpacked = tmp_path / "scratch/set/second"
    assert {path.stat().st_mode & 0o7777 for path in (unpacked / "run", unpacked / "again")} == {0o755}


def test_attributes_are_no_matter(tasks, tmp_path):
    try:
        for path in (tasks / "second", tasks / "second/text", tasks / "second/empty folder"):
            os.setxattr(path, "user.x", b"y")
    except OSError as error:
        pytest.skip(f"no attributes on this file system: {error.strerror}")
    source = source_of(image(tasks, tmp_path / "set", "-xattrs").parent)
    assert task_digest(source.folder("second", tmp_path / "scratch")) == task_digest(tasks / "second")


def test_devices_and_sockets_are_refused(tmp_path, monkeypatch):
    for name in ("fine", "device", "disk", "socket"):
        task(tmp_path / "tasks" / name)
    monkeypatch.chdir(tmp_path / "tasks/socket")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("s")
        made = ("-p", "device/null c 666 0 0 1 3", "-p", "disk/sda b 666 0 0 8 0")
        source = source_of(image(tmp_path / "tasks", tmp_path / "set", *made).parent)
    assert refusal(source.folder, "device", tmp_path / "scratch") == "null is a device, which a task cannot have"
    assert refusal(source.folder, "disk", tmp_path / "scratch") == "sda is a device, which a task cannot have"
    assert refusal(source.folder, "socket", tmp_path / "scratch") == "s is a socket, which a task cannot have"
    assert tree(source.folder("fine", tmp_path / "scratch")) == {"task.toml": "file 644 "}


@pytest.mark.parametrize("name", ["lzo", "lz4"])
def test_other_compressions_are_refused_by_name(tmp_path, name):
    task(tmp_path / "tasks/a")
    file = image(tmp_path / "tasks", tmp_path / "set")
    data = bytearray(file.read_bytes())
    data[20] = {"lzo": 3, "lz4": 5}[name]
    file.write_bytes(data)
    with pytest.raises(OtvalUsageError, match=f"its compression is {name}; gzip, xz and zstd can be read"):
        source_of(file.parent).names()


@pytest.mark.parametrize("cut", [0, 4, 95, 96, 200, -4096])
def test_an_image_that_is_not_whole_is_named(tasks, tmp_path, monkeypatch, cut):
    file = image(tasks, tmp_path / "set", "-nopad")
    file.write_bytes(file.read_bytes()[:cut])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OtvalUsageError, match=r"^set/tasks\.sqfs cannot be read: .*; get or pack the dataset anew$"):
        source_of(file.parent).names()


def test_a_folder_that_holds_itself_is_refused(tmp_path):
    (task(tmp_path / "tasks/a") / "loop").mkdir()
    file = image(tmp_path / "tasks", tmp_path / "set", "-noI")
    with_loop = Image(file)
    ((_, place, _),) = with_loop.listing(with_loop.root())
    with_loop.close()
    data = bytearray(file.read_bytes())
    entry = data.index(b"loop") - 8
    data[entry : entry + 2] = place[1].to_bytes(2, "little")
    file.write_bytes(data)
    source = source_of(file.parent)
    assert source.names() == (["a"], [])
    assert "more than 64 folders deep" in refusal(source.folder, "a", tmp_path / "scratch")


@pytest.mark.parametrize("name", [b"../x", b"/etc", b"a/bc"])
def test_names_that_cannot_be_are_refused(tmp_path, name):
    task(tmp_path / "tasks/a", wxyz=b"1")
    file = image(tmp_path / "tasks", tmp_path / "set", "-noI")
    file.write_bytes(file.read_bytes().replace(b"wxyz", name))
    assert "a name that cannot be one" in refusal(source_of(file.parent).folder, "a", tmp_path / "scratch")


def test_a_block_that_inflates_too_far_is_refused(tmp_path, monkeypatch):
    task(tmp_path / "tasks/a", big=bytes(1000) + b"x" * 130_000)
    source = source_of(image(tmp_path / "tasks", tmp_path / "set").parent)
    assert source.has("a")
    bomb = zlib.compress(bytes(50_000_000))
    original = Image._bytes
    monkeypatch.setattr(
        Image, "_bytes", lambda self, place, count: bomb if count > 60 else original(self, place, count)
    )
    assert "larger than it may be" in refusal(source.folder, "a", tmp_path / "scratch")


def test_a_file_of_any_claimed_size_is_refused_before_its_blocks_are_read(tmp_path, monkeypatch):
    task(tmp_path / "tasks/a", big=b"x" * 10_000)
    source = source_of(image(tmp_path / "tasks", tmp_path / "set").parent)
    monkeypatch.setattr(module, "MAX_BYTES", 9_999)
    assert "a file of 10000 bytes" in refusal(source.folder, "a", tmp_path / "scratch")


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A small image whose tables are not compressed, so that a changed byte changes what they say."""
    folder = tmp_path_factory.mktemp("plain")
    inner = task(folder / "tasks/a", small=b"x" * 100, larger=b"y" * 9000) / "folder"
    inner.mkdir()
    (inner / "link").symlink_to("target")
    task(folder / "tasks/b")
    return image(folder / "tasks", folder / "set", "-noI", "-noF", "-noD", "-b", "4096", "-nopad").read_bytes()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(data=st.data())
def test_any_changed_bytes_give_a_task_or_a_refusal(tmp_path, plain, data):
    changed = bytearray(plain)
    places = st.one_of(st.integers(0, 95), st.integers(9100, len(plain) - 1))
    for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4)):
        changed[place] = byte
    (tmp_path / "set").mkdir(exist_ok=True)
    (tmp_path / "set/tasks.sqfs").write_bytes(changed)
    source = source_of(tmp_path / "set")
    try:
        names = source.names()[0]
    except OtvalUsageError:
        return
    for name in names:
        try:
            source.folder(name, tmp_path / "scratch")
        except Conclusion as conclusion:
            assert conclusion.reason == "bad-task"


def test_kinds_are_numbered_as_the_kernel_does(tasks, tmp_path):
    opened = Image(image(tasks, tmp_path / "set"))
    found = {name: kind for name, _, kind in opened.listing(opened.root())}
    assert found[b"first"] is Kind.FOLDER
    assert found[b"README"] is Kind.FILE
    assert found[b"to-first"] is Kind.LINK
