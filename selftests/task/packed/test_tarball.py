"""Archives of one task: the spellings that are taken, and archives that are damaged or made to harm."""

import io
import struct
import tarfile
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_otval.core import Conclusion
from pytest_otval.task.packed import tarball
from pytest_otval.task.packed.tarball import members, task_entries
from pytest_otval.task.packed.unpack import DamagedError, unpack
from selftests.task.packed.helpers import member, refusal, tar, tree, zipped


def unpacked(archive: bytes, folder, task="task"):
    unpack(task_entries(io.BytesIO(archive), task), folder)
    return tree(folder)


def refused(archive: bytes, folder, task="task") -> str:
    headline = refusal(unpacked, archive, folder, task)
    assert not folder.exists()
    return headline


FOLDER = {"kind": tarfile.DIRTYPE, "mode": 0o700}
WANTED = {"task.toml": "file 644 x", "tests": "folder 755", "tests/test.sh": "file 755 y"}


@pytest.mark.parametrize("top", ["", "./", "task/", "./task/", "task//./"])
@pytest.mark.parametrize("pack", [lambda data: data, zipped])
@pytest.mark.parametrize("pax", [False, True])
def test_a_task_is_relative_or_below_a_folder_of_its_name(tmp_path, top, pack, pax):
    archive = tar(
        *([member(top, **FOLDER)] if top else []),
        member(f"{top}task.toml", b"x"),
        member(f"{top}tests/", **FOLDER),
        member(f"{top}tests/test.sh", b"y", mode=0o4755),
        pax=pax,
    )
    assert unpacked(pack(archive), tmp_path / "out") == WANTED


def test_a_task_may_have_a_folder_of_its_own_name(tmp_path):
    archive = tar(member("tests/test.sh", b"y", mode=0o755), member("task.toml", b"x"))
    assert unpacked(archive, tmp_path / "out", task="tests") == WANTED
    assert unpacked(tar("task/a", "b"), tmp_path / "out") == {
        "b": "file 644 ",
        "task": "folder 755",
        "task/a": "file 644 ",
    }
    assert unpacked(tar("task"), tmp_path / "out") == {"task": "file 644 "}


@pytest.mark.parametrize("top", ["", "task/"])
def test_hard_links_are_stripped_as_files_are(tmp_path, top):
    archive = tar(member(f"{top}a", b"x"), member(f"{top}b", kind=tarfile.LNKTYPE, target=f"{top}a"))
    assert unpacked(archive, tmp_path / "out") == {"a": "file 644 x", "b": "file 644 x"}


@pytest.mark.parametrize("name", ["\udcff\udcfe", "ö", "line\nbreak", "a" * 200, "a/" * 60 + "b", " ", "-", "~"])
@pytest.mark.parametrize("pax", [False, True])
def test_odd_names_are_kept(tmp_path, name, pax):
    unpack(task_entries(io.BytesIO(tar(name, pax=pax)), "task"), tmp_path / "out")
    assert (tmp_path / "out" / name).read_bytes() == b""


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        (member("/etc/passwd"), "/etc/passwd has an absolute path"),
        (member("task/../../x"), "task/../../x has .. in its path"),
        (member("task/../x"), "task/../x has .. in its path"),
        (member("null", kind=tarfile.CHRTYPE), "null is a device, which a task cannot have"),
        (member("disk", kind=tarfile.BLKTYPE), "disk is a device, which a task cannot have"),
        (member("odd", kind=b"Z"), "odd is of an unknown type, which a task cannot have"),
        (
            member("l", kind=tarfile.LNKTYPE, target="/etc/passwd"),
            "l is a hard link to /etc/passwd, which is no file before it",
        ),
        (member("l", kind=tarfile.LNKTYPE, target="../x"), "l is a hard link to ../x, which is no file before it"),
    ],
)
def test_hostile_members_are_refused(tmp_path, entry, rule):
    assert refused(tar(member("task.toml"), entry), tmp_path / "out") == rule


def test_paths_stay_hostile_below_the_folder_of_the_task(tmp_path):
    assert refused(tar("task/a", "task/../../x"), tmp_path / "out") == "../../x has .. in its path"
    archive = tar("task/a", member("task/l", kind=tarfile.LNKTYPE, target="/task/a"))
    assert "hard link to /task/a" in refused(archive, tmp_path / "out")


def sparse() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("hole")
        info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(1 << 60)}
        map_block = f"1\n0\n{1 << 60}\n".encode().ljust(512, b"\0")
        info.size = len(map_block)
        archive.addfile(info, io.BytesIO(map_block))
    return data.getvalue()


def test_sparse_files_are_refused(tmp_path):
    assert refused(sparse(), tmp_path / "out") == "hole is a sparse file, which a task cannot have"


GOOD = tar(member("a", b"x" * 2000), member("b", b"y" * 2000))


@pytest.mark.parametrize("end", [0, 100, 511, 512, 1000, 2560, 2561, 3000, 3072, 5119, 5120, 5121])
def test_a_truncated_archive_is_damage(tmp_path, end):
    assert refused(GOOD[:end], tmp_path / "out").startswith("the packed task cannot be read: ")


@pytest.mark.parametrize("end", [0, 1, 5, 20, -20, -8, -1])
def test_a_truncated_gzip_is_damage(tmp_path, end):
    assert refused(zipped(GOOD)[:end], tmp_path / "out").startswith("the packed task cannot be read: ")


def test_a_wrong_checksum_of_gzip_is_damage(tmp_path):
    data = bytearray(zipped(GOOD))
    data[-8] ^= 1
    assert "CRC" in refused(bytes(data), tmp_path / "out")


def test_a_damaged_header_is_not_the_end(tmp_path):
    data = bytearray(GOOD)
    data[2560 + 5] ^= 1
    assert "a header is damaged" in refused(bytes(data), tmp_path / "out")


def header(name: bytes = b"a", size: bytes = b"00000000000", kind: bytes = b"0") -> bytes:
    """Return a header with a right checksum and whatever else."""
    block = bytearray(512)
    block[: len(name)] = name
    block[100:108], block[124:136], block[156:157] = b"0000644\0", size.ljust(12, b"\0"), kind
    block[257:265] = b"ustar  \0"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


ENDS = bytes(1024)
NEGATIVE = b"\xff" + struct.pack(">q", -1024).rjust(11, b"\xff")
HUGE = b"\x80" + b"\xff" * 11


@pytest.mark.parametrize(
    "archive",
    [
        header(size=NEGATIVE) + header(b"b") + ENDS,
        header(kind=b"x", size=NEGATIVE) + ENDS,
        header(kind=b"L", size=NEGATIVE) + ENDS,
        header(size=HUGE) + ENDS,
        header(kind=b"x", size=HUGE) + ENDS,
        header(kind=b"L", size=HUGE) + ENDS,
        header(kind=b"L", size=b"77777777777") + ENDS,
        header(kind=b"S", size=HUGE) + ENDS,
        header(kind=b"L") * 5000 + ENDS,
        tar(member("x", b"30 GNU.sparse.major=1\n", kind=b"x")),
        header(kind=b"g", size=b"17") + b"15 path=../../x".ljust(512, b"\0") + header() + ENDS,
        b"\x1f\x8b" + bytes(100),
        b"no archive at all" * 100,
        b"",
    ],
    ids=range(14),
)
def test_archives_made_to_harm_are_damage(tmp_path, archive):
    """Loops, memory and recursion: what some versions of tarfile fall for."""
    assert refused(archive, tmp_path / "out")


def test_a_sparse_map_without_end_is_damage(tmp_path):
    data = sparse()
    place = data.index(b"1\n0\n")
    assert refused(data[:place] + b"9" * 512, tmp_path / "out")


def test_zeros_behind_the_end_are_no_harm_within_bounds(tmp_path, monkeypatch):
    assert unpacked(zipped(tar("a") + bytes(100_000)), tmp_path / "out") == {"a": "file 644 "}
    monkeypatch.setattr(tarball, "MAX_TAR_BYTES", 50_000)
    assert "larger than" in refused(zipped(tar("a") + bytes(100_000)), tmp_path / "out")


@pytest.mark.parametrize("kind", [b"0", b"x", b"L", b"g"])
def test_a_gzip_bomb_is_refused_before_it_takes_memory(tmp_path, monkeypatch, kind):
    size = 40 * 1024 * 1024
    monkeypatch.setattr(tarball, "MAX_TAR_BYTES", 8 * 1024 * 1024)
    packer = zlib.compressobj(wbits=31)
    bomb = packer.compress(header(kind=kind, size=b"%011o" % size)) + packer.compress(bytes(size)) + packer.flush()
    assert len(bomb) < 100_000
    assert refused(bomb, tmp_path / "out")


def test_too_many_members_are_refused_before_any_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(tarball, "MAX_ENTRIES", 5)
    assert "more than 5 entries" in refused(tar(*"abcdefg"), tmp_path / "out")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(place=st.integers(0, len(GOOD) - 1), byte=st.integers(0, 255), second=st.integers(0, len(GOOD) - 1))
def test_any_changed_byte_gives_a_task_or_a_refusal(tmp_path, place, byte, second):
    data = bytearray(GOOD)
    data[place] = data[second] = byte
    for archive in (bytes(data), zipped(bytes(data))):
        try:
            unpacked(archive, tmp_path / "out")
        except Conclusion as conclusion:
            assert conclusion.reason == "bad-task"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    data=st.binary(max_size=600), behind=st.sampled_from([b"", header(), header(kind=b"x", size=b"1000"), b"\x1f\x8b"])
)
def test_any_bytes_give_a_refusal(tmp_path, data, behind):
    for archive in (behind + data, data + behind):
        with pytest.raises(Conclusion):
            unpacked(archive, tmp_path / "out")


def test_members_have_the_range_that_reads_them_again():
    archive = tar("short", member("long" * 60, b"x" * 600), "end")
    found = [(entry.name, entry.start, entry.end) for entry in members(io.BytesIO(archive))]
    assert [name for name, _, _ in found] == [b"short", b"long" * 60, b"end"]
    for name, start, end in found:
        (again,) = members(io.BytesIO(archive), start, end)
        assert (again.name, b"".join(again.content())) == (name, b"x" * 600 if name.startswith(b"long") else b"")


def test_errors_of_the_host_are_not_damage():
    class Broken(io.BytesIO):
        def read(self, size=-1):
            raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        list(members(Broken(GOOD)))
    with pytest.raises(DamagedError):
        list(members(io.BytesIO(b"")))
