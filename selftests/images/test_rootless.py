"""Owners that a runtime only notes."""

import errno
import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.core import Conclusion
from pytest_otval.images import rootless
from pytest_otval.images.rootless import pack_rootless, require_notes


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def note(path, uid, gid):
    data = (b"\x08" + varint(uid) if uid else b"") + (b"\x10" + varint(gid) if gid else b"")
    os.setxattr(path, "user.rootlesscontainers", data)


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    require_notes(folder)
    return folder


def listing(path):
    argv = ["unsquashfs", "-lln", "-d", "", path]
    lines = subprocess.run(argv, capture_output=True, check=True).stdout.decode(errors="surrogateescape").splitlines()
    return {line.split()[5]: tuple(line.split()[:2]) for line in lines if len(line.split()) >= 6}


def test_owners_modes_and_links(root, tmp_path):
    (root / "home").mkdir()
    (root / "home/a b\udcff\n").write_bytes(b"x")
    (root / "home/secret").write_bytes(b"s")
    (root / "link").symlink_to("/etc/passwd")
    (root / "plain").write_bytes(b"p")
    os.link(root / "home/secret", root / "twice")
    note(root / "home", 1000, 0)
    note(root / "home/secret", 65534, 42)
    note(root / "plain", 0xFFFFFFFF, 5)
    (root / "home/secret").chmod(0)
    (root / "home").chmod(0o500)
    pack_rootless(root, tmp_path / "x.sqfs")
    found = listing(tmp_path / "x.sqfs")
    assert found["/home"] == ("dr-x------", "1000/0")
    assert found["/home/secret"] == found["/twice"] == ("----------", "65534/42")
    assert found["/plain"][1] == "0/5"
    assert found["/link"] == ("lrwxrwxrwx", "0/0")
    assert any(path.startswith("/home/a") for path in found)
    argv = ["unsquashfs", "-cat", tmp_path / "x.sqfs", "twice"]
    assert subprocess.run(argv, capture_output=True, check=True).stdout == b"s"


@given(st.integers(1, 2**32 - 2), st.integers(1, 2**32 - 2))
def test_numbers(uid, gid):
    assert rootless._numbers(b"\x08" + varint(uid) + b"\x10" + varint(gid)) == {1: uid, 2: gid}


@given(st.binary(max_size=64))
def test_odd_notes_do_no_harm(data):
    rootless._numbers(data)


def test_file_system_without_notes(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(rootless.os, "setxattr", refuse)
    with pytest.raises(Conclusion, match="OT_SCRATCH") as caught:
        require_notes(tmp_path / "layout")
    assert caught.value.reason == "base-unavailable"
