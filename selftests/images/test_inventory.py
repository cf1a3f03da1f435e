import os

import pytest
from filelock import FileLock

from pytest_otval.images.inventory import Use, Verifier, is_locked, keys_of, remove_image, use_of
from pytest_otval.images.locks import locked_now
from pytest_otval.images.record import image_path, lock_path, record_path
from selftests.images.store_of_images import add_image, key_of


def test_use_counts_files_and_folders(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert use_of(tmp_path) == Use(3, 5 + len("/etc/passwd"))
    assert use_of(tmp_path / "none") == Use(0, 0)


def test_keys_are_those_of_images_and_nothing_else(tmp_path):
    add_image(tmp_path, 1)
    (tmp_path / f"{key_of(2)}.sqfs").write_bytes(b"half")
    for name in ("tags.jsonl", "toolbox-1.sqfs", f"{key_of(3)}.lock", f".{key_of(4)}.sqfs.h.1.a", "ABC.json"):
        (tmp_path / name).write_bytes(b"")
    assert keys_of(tmp_path) == sorted([key_of(1), key_of(2)])
    assert keys_of(tmp_path / "none") == []


def test_sound_image(tmp_path):
    below = add_image(tmp_path, 1)
    above = add_image(tmp_path, 2, below=(below.key,))
    assert Verifier(tmp_path).fault(above.key) == ""


def test_each_file_is_read_once(tmp_path, monkeypatch):
    below = add_image(tmp_path, 1)
    keys = [add_image(tmp_path, number, below=(below.key,)).key for number in range(2, 6)]
    read = []
    look = Verifier._look
    monkeypatch.setattr(Verifier, "_look", lambda self, key: read.append(key) or look(self, key))
    verifier = Verifier(tmp_path)
    assert [verifier.fault(key) for key in (*keys, below.key)] == [""] * 5
    assert sorted(read) == sorted([below.key, *keys])


def make_fifo(path):
    path.unlink()
    os.mkfifo(path)


def make_link(path):
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda path: path.write_bytes(b"pack"), "the packed file has 4 bytes in place of 6"),
        (lambda path: path.write_bytes(b"PACKED"), "the packed file has another content"),
        (lambda path: path.unlink(), "the packed file is missing"),
        (make_fifo, "the packed file is a FIFO"),
        (make_link, "the packed file is a link"),
        (lambda path: path.with_suffix(".json").unlink(), "there is no record"),
        (lambda path: path.with_suffix(".json").write_text("{"), "the record cannot be read, or is of another version"),
    ],
)
def test_faults_of_an_image_and_of_what_lies_on_it(tmp_path, spoil, says):
    below = add_image(tmp_path, 1)
    above = add_image(tmp_path, 2, below=(below.key,))
    spoil(image_path(tmp_path, below.key))
    assert Verifier(tmp_path).fault(below.key) == says
    assert Verifier(tmp_path).fault(above.key) == f"below it, {below.key[:12]}: {says}"


def test_lock_is_held_by_one(tmp_path):
    key = key_of(1)
    assert not is_locked(tmp_path, key)
    lock = lock_path(tmp_path, key)
    with locked_now(lock) as first, locked_now(lock) as second:
        assert (first, second) == (True, False)
        assert is_locked(tmp_path, key)
    assert not is_locked(tmp_path, key)
    assert list(tmp_path.iterdir()) == []


def test_image_in_the_making_is_not_removed(tmp_path):
    record = add_image(tmp_path, 1)
    with FileLock(tmp_path / f"{record.key}.lock"):
        assert not remove_image(tmp_path, record.key)
        assert image_path(tmp_path, record.key).exists()
    assert remove_image(tmp_path, record.key)
    assert not record_path(tmp_path, record.key).exists()
    assert keys_of(tmp_path) == []
