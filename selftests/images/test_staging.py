"""Copies of images on a node's own disk."""

import hashlib
import os
import time
from collections import namedtuple
from types import SimpleNamespace

import psutil
import pytest

from pytest_otval.core import Conclusion
from pytest_otval.images import staging
from pytest_otval.images.model import Image, ImageConfig
from pytest_otval.images.record import Record, write_record
from pytest_otval.images.staging import FOLDER, RECENT_SECONDS, UNUSED_SECONDS, Staging, is_remote, sweep_staged

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def image(tmp_path):
    """Put images of one-letter keys into a store: ``image("a", "b")`` has two files."""
    store = tmp_path / "store"
    store.mkdir()

    def make(*letters):
        files = []
        for letter in letters:
            file = store / f"{letter * 64}.sqfs"
            file.write_bytes(letter.encode() * 10)
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            write_record(store, Record(letter * 64, content, "base", 10, ImageConfig(), False))
            files.append(file)
        return Image(letters[-1] * 64, tuple(files), "c", "base", ImageConfig())

    return make


@pytest.fixture
def node(tmp_path, monkeypatch):
    folder = tmp_path / "node"
    folder.mkdir()
    room(monkeypatch, folder, 9)
    return folder


def copies(node):
    return sorted(path.read_text()[0] for path in (node / FOLDER).iterdir())


def age(node, letter, seconds):
    then = time.time() - seconds
    (copy,) = (path for path in (node / FOLDER).iterdir() if path.read_text()[0] == letter)
    os.utime(copy, (then, then))


def test_each_file_is_copied_once(image, node):
    image("a")
    layered = Staging(node).staged(image("a", "b"))
    assert [file.read_bytes() for file in layered.files] == [b"a" * 10, b"b" * 10]
    assert {file.parent for file in layered.files} == {node / FOLDER}
    before = [file.stat().st_ino for file in layered.files]
    assert [file.stat().st_ino for file in Staging(node).staged(image("a", "b")).files] == before
    assert copies(node) == ["a", "b"]


def test_large_file_is_copied_once_it_is_worth_it(image, node, monkeypatch):
    monkeypatch.setattr(staging, "BYTES_AN_ASK", 4)
    made, where = image("a"), Staging(node)
    assert [where.staged(made) == made for _ in range(4)] == [True, True, False, False]
    assert Staging(node).staged(made) != made, "another process finds the copy"


def test_copy_of_other_bytes_is_no_copy(image, node):
    made = image("a")
    before = Staging(node).staged(made).files[0]
    made.files[0].write_bytes(b"b" * 12)
    content = hashlib.sha256(made.files[0].read_bytes()).hexdigest()
    write_record(made.files[0].parent, Record("a" * 64, content, "base", 12, ImageConfig(), False))
    after = Staging(node).staged(made).files[0]
    assert (before.read_bytes(), after.read_bytes()) == (b"a" * 10, b"b" * 12)


def test_copy_that_was_cut_short_is_made_again(image, node):
    made = image("a")
    copy = Staging(node).staged(made).files[0]
    copy.write_bytes(b"a")
    assert Staging(node).staged(made).files[0].read_bytes() == b"a" * 10


def test_damage_in_the_store_is_found_and_made_anew(image, node):
    broken = image("a")
    broken.files[0].write_bytes(b"x" * 10)
    with pytest.raises(Conclusion, match="damaged") as caught:
        Staging(node).staged(broken)
    assert caught.value.reason == "base-unavailable"
    assert copies(node) == []
    assert not broken.files[0].with_suffix(".json").exists()


def test_file_that_is_no_image_of_the_store_is_used_where_it_is(node, tmp_path):
    own = Image("k", (tmp_path / "own.sif",), "c", "file", ImageConfig())
    own.files[0].write_bytes(b"x")
    assert Staging(node).staged(own) == own


def room(monkeypatch, node, copies):
    """Let the disk have 100 bytes, with room for so many copies of 10."""

    def usage(folder):
        used = sum(path.stat().st_size for path in (node / FOLDER).glob("*.sqfs"))
        return Usage(100, 0, 20 + 10 * copies - used)

    monkeypatch.setattr(staging, "shutil", SimpleNamespace(disk_usage=usage))


def test_what_was_asked_for_longest_ago_makes_room(image, node, monkeypatch):
    room(monkeypatch, node, 2)
    for letter in "ab":
        Staging(node).staged(image(letter))
    age(node, "a", RECENT_SECONDS + 5)
    age(node, "b", RECENT_SECONDS + 9)
    Staging(node).staged(image("a"))
    Staging(node).staged(image("c"))
    assert copies(node) == ["a", "c"]


def test_without_room_the_store_serves(image, node, monkeypatch):
    room(monkeypatch, node, 1)
    Staging(node).staged(image("a"))
    second = image("b")
    assert Staging(node).staged(second) == second
    assert copies(node) == ["a"]


def test_a_disk_that_refuses_is_no_obstacle(image, node, monkeypatch):
    (node / FOLDER).write_bytes(b"")
    made = image("a")
    assert Staging(node).staged(made) == made


def test_sweep(image, node):
    for letter in "ab":
        Staging(node).staged(image(letter))
    age(node, "a", UNUSED_SECONDS + 5)
    assert sweep_staged(node) == 1
    assert copies(node) == ["b"]
    assert sweep_staged(node / "none") == 0


@pytest.mark.parametrize(
    ("kind", "remote"), [("nfs4", True), ("lustre", True), ("fuse.sshfs", True), ("ext4", False), ("tmpfs", False)]
)
def test_kind_of_file_system(tmp_path, monkeypatch, kind, remote):
    mounts = [SimpleNamespace(mountpoint="/", fstype="nfs"), SimpleNamespace(mountpoint=str(tmp_path), fstype=kind)]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: mounts)
    (tmp_path / "link").symlink_to(tmp_path / "deep")
    assert is_remote(tmp_path / "link" / "er") is remote
