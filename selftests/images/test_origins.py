"""COPY --from: what its paths name in an image's files."""

import io
import os
import tarfile

import pytest

from pytest_otval.images.copying import CopyError
from pytest_otval.images.lower import Lower
from pytest_otval.images.origins import find_in_origin, origin_members
from pytest_otval.images.pack import packing

FILES = {
    "out/a.so": "a",
    "out/.hidden": "h",
    "out/sub/b.so": "b" * 300_000,
    "out/link": "-> sub/b.so",
    "out/away": "-> /out/sub",
    "out/nowhere": "-> /nothing",
    "out/loop": "-> loop",
    "out/up": "-> ../../../out/a.so",
    "lib": "-> out",
}


@pytest.fixture
def lower(tmp_path):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in FILES.items():
            header = tarfile.TarInfo(name)
            header.mode, header.uid, header.gid = 0o640, 7, 8
            if content.startswith("-> "):
                header.type, header.linkname = tarfile.SYMTYPE, content[3:]
            else:
                header.size = len(content)
            tar.addfile(header, io.BytesIO(content.encode()) if header.isreg() else None)
    with packing(tmp_path / "image.sqfs", all_root=False) as stream:
        os.write(stream, archive.getvalue()[:0])
        with os.fdopen(os.dup(stream), "wb") as file:
            file.write(archive.getvalue())
    with Lower([tmp_path / "image.sqfs"]) as lower:
        yield lower


def found(lower, path):
    return [(one.name, one.node.inode.kind.name) for one in find_in_origin(lower, path)]


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("/out/a.so", [("a.so", "FILE")]),
        ("/out", [("", "FOLDER")]),
        ("/", [("", "FOLDER")]),
        ("/out/link", [("link", "FILE")]),
        ("/out/away", [("", "FOLDER")]),
        ("/out/away/b.so", [("b.so", "FILE")]),
        ("/out/up", [("up", "FILE")]),
        ("/lib/a.so", [("a.so", "FILE")]),
        ("/out/*.so", [("a.so", "FILE")]),
        ("/lib/a*", [("a.so", "FILE"), ("", "FOLDER")]),
        ("/out/*/*.so", [("b.so", "FILE")]),
        ("/*/.h*", [(".hidden", "FILE")]),
        ("/out/nomatch*", []),
        ("/out/li[n]k", [("link", "FILE")]),
    ],
)
def test_found(lower, path, what):
    assert found(lower, path) == what


@pytest.mark.parametrize(
    "path", ["/nothing", "/out/nowhere", "/out/loop", "/out/a.so/x", "/nothing/*", "/out/now*", "/[", "/" + "*/" * 200]
)
def test_not_there(lower, path):
    with pytest.raises(CopyError):
        found(lower, path)


def members(lower, path, owner=None, mode=""):
    (one,) = find_in_origin(lower, path)
    return {member.header.name: member for member in origin_members(lower, one, one.name or "", owner, mode)}


def test_owner_mode_and_content_are_kept(lower):
    got = members(lower, "/out")
    assert set(got) == {"a.so", ".hidden", "sub", "sub/b.so", "link", "away", "nowhere", "loop", "up"}
    header = got["sub/b.so"].header
    assert (header.uid, header.gid, header.mode, header.size) == (7, 8, 0o640, 300_000)
    assert got["link"].header.linkname == "sub/b.so"
    with got["sub/b.so"].open() as file:
        assert file.read() == b"b" * 300_000


def test_owner_and_mode_asked_for(lower):
    got = members(lower, "/out", (1, 2), "700")
    assert {(one.header.uid, one.header.gid) for one in got.values()} == {(1, 2)}
    assert {one.header.mode for one in got.values() if not one.header.issym()} == {0o700}


def test_archive_can_be_read_again(lower, tmp_path):
    with tarfile.open(tmp_path / "copy.tar", "w") as tar:
        for member in members(lower, "/out").values():
            member.add_to(tar)
    with tarfile.open(tmp_path / "copy.tar") as tar:
        assert tar.extractfile("sub/b.so").read() == b"b" * 300_000
        assert tar.getmember("sub").isdir()


def test_too_much(lower, monkeypatch):
    monkeypatch.setattr("pytest_otval.images.origins.MAX_BYTES", 1000)
    with pytest.raises(CopyError, match="more than"):
        members(lower, "/out")
