import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.images.file_import import import_file
from pytest_otval.images.inventory import Verifier
from pytest_otval.images.record import image_path
from pytest_otval.images.sif import SifError, squashfs_in_sif
from selftests.images.store_of_images import packed


def sif(
    content=b"squashfs", start=4096, kind=0x4004, file_system=1, role=2, used=True, length=None, more=(), total=None
):
    """Return a SIF file with one partition, by the structures of its specification."""
    count = 1 + len(more)
    head = struct.pack(
        "<32s10s3s3s16s8q", b"#!/usr/bin/env run-singularity\n", b"SIF_MAGIC\0", b"01\0", b"02\0", b"", 0, 0, 0,
        count if total is None else total, 128, count * 585, start, len(content),
    )  # fmt: skip
    table = b"".join(
        struct.pack(
            "<i?III7q128s384s", one_kind, one_used, 1, 1, 0, start, len(content) if length is None else length,
            len(content), 0, 0, 0, 0, b"name", struct.pack("<ii3s", one_system, one_role, b"02\0"),
        )
        for one_kind, one_used, one_system, one_role in [(kind, used, file_system, role), *more]
    )  # fmt: skip
    return (head + table).ljust(start, b"\0") + content


def look(data):
    return squashfs_in_sif(io.BytesIO(data), len(data))


def test_partition_is_found():
    assert look(sif()) == (4096, 8)
    assert look(sif(more=[(0x4006, True, 0, 0), (0x4004, False, 1, 4)])) == (4096, 8)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no SIF"),
        (b"x" * 5000, "no SIF"),
        (sif()[:4100], "truncated"),
        (sif()[:200], "truncated"),
        (sif(length=-1), "truncated"),
        (sif(length=2**62), "truncated"),
        (sif(total=-1), "header"),
        (sif(total=10**9), "header"),
        (sif(kind=0x4001), "no root"),
        (sif(used=False), "no root"),
        (sif(role=3), "no root"),
        (sif(file_system=2), "no squashfs"),
        (sif(more=[(0x4004, True, 1, 4)]), "layers"),
    ],
)
def test_files_that_cannot_be_taken_apart(data, says):
    with pytest.raises(SifError, match=says):
        look(data)


@given(st.binary(max_size=1000))
def test_any_bytes(data):
    with pytest.raises(SifError):
        look(b"".ljust(32, b"\0") + b"SIF_MAGIC\0" + data)


@pytest.fixture
def squashfs(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_text("x")
    return packed(tmp_path / "root")


def test_both_forms_of_a_file_are_one_image(tmp_path, squashfs):
    (tmp_path / "a.sqfs").write_bytes(squashfs)
    (tmp_path / "b.sif").write_bytes(sif(squashfs))
    store = tmp_path / "store"
    first, second = (import_file(store, tmp_path / name) for name in ("a.sqfs", "b.sif"))
    assert first == second
    assert first.base == f"file@sha256:{first.content}"
    assert image_path(store, first.key).read_bytes() == squashfs
    assert Verifier(store).fault(first.key) == ""
    assert len(list(store.iterdir())) == 2


def test_damaged_image_is_made_whole_by_importing_it_again(tmp_path, squashfs):
    (tmp_path / "a.sqfs").write_bytes(squashfs)
    store = tmp_path / "store"
    key = import_file(store, tmp_path / "a.sqfs").key
    image_path(store, key).write_bytes(b"")
    import_file(store, tmp_path / "a.sqfs")
    assert Verifier(store).fault(key) == ""


@pytest.mark.parametrize("name", ["none.sqfs", "text.sqfs", "text.sif", "link.sqfs", "cut.sqfs"])
def test_files_that_are_no_image(tmp_path, squashfs, name):
    for text in ("text.sqfs", "text.sif"):
        (tmp_path / text).write_text("x" * 1000)
    (tmp_path / "cut.sqfs").write_bytes(squashfs[:200])
    (tmp_path / "whole").write_bytes(squashfs)
    (tmp_path / "link.sqfs").symlink_to("whole")
    with pytest.raises(OtvalUsageError, match="cannot be imported"):
        import_file(tmp_path / "store", tmp_path / name)
    assert list((tmp_path / "store").iterdir()) == []


def test_full_disk(tmp_path, squashfs, monkeypatch):
    (tmp_path / "a.sqfs").write_bytes(squashfs)
    monkeypatch.setattr("pytest_otval.images.bundle.shutil.disk_usage", lambda path: type("Usage", (), {"free": 1}))
    with pytest.raises(Conclusion, match="host-disk-full"):
        import_file(tmp_path / "store", tmp_path / "a.sqfs")
