"""What a place holds, also in archives that somebody else wrote: nothing hostile gets out."""

import io
import os
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.evidence import EvidenceError, extract, files, folder, shown
from pytest_otval.evidence.members import write_member
from selftests.evidence.conftest import LOGS, NAME, archive_of, fill, listing, tool

# --- archives of somebody else --------------------------------------------------------------------------------------


def foreign(run: Path, members) -> str:
    """Write an archive as somebody else could, and return the place of its one entry."""
    (run / "evidence").mkdir()
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, kind, data in members:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, len(data), "/etc/passwd"
            tar.addfile(info, io.BytesIO(data))
    with (run / "evidence" / "x.tar.gz").open("w+b") as file:
        return f"evidence/x.tar.gz@0+{write_member(file.fileno(), 0, [content.getvalue()])}"


TOP = ("demo/t/noop", tarfile.DIRTYPE, b"")


@pytest.mark.parametrize(
    "name", ["/etc/x", "demo/t/noop/../../../x", "../x", "elsewhere", "demo/t/noop", "demo/t/noopx/y"]
)
def test_names_that_lead_out(tmp_path, name):
    place = foreign(tmp_path, [TOP, (name, tarfile.REGTYPE, b"x")])
    with pytest.raises(EvidenceError, match="not written by us"):
        extract(tmp_path, place, tmp_path / "out")
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_only_files_and_folders_are_made(tmp_path, kind):
    place = foreign(tmp_path, [TOP, ("demo/t/noop/x", kind, b""), ("demo/t/noop/y", tarfile.REGTYPE, b"y")])
    extract(tmp_path, place, tmp_path / "out")
    assert os.listdir(tmp_path / "out") == ["y"]


def test_file_through_a_link_of_the_archive(tmp_path):
    inner = [("demo/t/noop/x", tarfile.SYMTYPE, b""), ("demo/t/noop/x/y", tarfile.REGTYPE, b"y")]
    extract(tmp_path, foreign(tmp_path, [TOP, *inner]), tmp_path / "out")
    assert (tmp_path / "out" / "x" / "y").read_bytes() == b"y" and not (tmp_path / "out" / "x").is_symlink()


def test_two_files_of_one_name(tmp_path):
    twice = ("demo/t/noop/x", tarfile.REGTYPE, b"x")
    with pytest.raises(FileExistsError):
        extract(tmp_path, foreign(tmp_path, [TOP, twice, twice]), tmp_path / "out")


def test_bombs_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("pytest_otval.evidence.place.MAX_FILES", 5)
    many = [(f"demo/t/noop/{number}", tarfile.REGTYPE, b"") for number in range(10)]
    with pytest.raises(EvidenceError, match="not written by us"):
        list(files(tmp_path, foreign(tmp_path, [TOP, *many])))


def test_long_files_are_read_to_a_limit(tmp_path):
    place = foreign(tmp_path, [TOP, ("demo/t/noop/x", tarfile.REGTYPE, bytes(folder.MAX_FILE_BYTES + 10_000))])
    ((_, data),) = files(tmp_path, place)
    assert len(data) < folder.MAX_FILE_BYTES + 1000


def test_damaged_entry_is_told(tmp_path, add):
    place = add()
    path = tmp_path / "evidence" / "main.tar.gz"
    for at in range(path.stat().st_size):
        data = bytearray(path.read_bytes())
        data[at] ^= 0x55
        (tmp_path / "evidence" / "bad.tar.gz").write_bytes(data)
        try:
            found = dict(files(tmp_path, place.replace("main", "bad")))
        except EvidenceError as error:
            assert "damaged" in str(error)
        else:
            # gzip's header has bytes that nothing depends on.
            assert found == LOGS and at < 24


@given(st.binary(max_size=200), st.integers(0, 300), st.integers(0, 300))
def test_any_bytes_anywhere_are_told(data, at, length):
    with TemporaryDirectory() as name:
        (Path(name) / "evidence").mkdir()
        (Path(name) / "evidence" / "x.tar.gz").write_bytes(data)
        with pytest.raises(EvidenceError):
            list(files(Path(name), f"evidence/x.tar.gz@{at}+{length}"))


# --- places ---------------------------------------------------------------------------------------------------------


def test_loose_folder(tmp_path):
    fill(tmp_path / "evidence" / NAME, LOGS)
    assert dict(files(tmp_path, f"evidence/{NAME}")) == LOGS
    extract(tmp_path, f"evidence/{NAME}", tmp_path / "out")
    assert (tmp_path / "out" / "result.json").read_bytes() == b"{}\n"
    assert tool(f"ls {shown(tmp_path, f'evidence/{NAME}')}").split() == ["agent", "result.json", "verifier"]


@pytest.mark.parametrize(
    "place",
    ["", ".", "/etc", "evidence/..", "evidence/../..", "run.json", "not kept: disk full", "evidence/x\0"]
    + [f"evidence/{name}" for name in ("no", "out", "no.tar.gz@0+1", "link.tar.gz@0+9", "pipe.tar.gz@0+9")],
)
def test_no_place(tmp_path, place):
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "out").symlink_to("/etc")
    (tmp_path / "evidence" / "link.tar.gz").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "evidence" / "pipe.tar.gz")
    with pytest.raises(EvidenceError):
        list(files(tmp_path, place))
    with pytest.raises(EvidenceError):
        extract(tmp_path, place, tmp_path / "into")


def test_target_that_exists_is_refused(tmp_path, add):
    place = add()
    with pytest.raises(FileExistsError):
        extract(tmp_path, place, tmp_path / "work")


def test_shown_is_as_short_as_it_can_be(tmp_path, add, monkeypatch):
    place = add()
    monkeypatch.chdir(tmp_path)
    end = place.partition("+")[2]
    assert shown(tmp_path, place) == f"head -c {end} evidence/main.tar.gz | tail -c {end} | tar xzvC /tmp"


def test_shown_is_one_word_for_a_shell(tmp_path):
    run = tmp_path / "it's; here"
    (place,) = archive_of(run, [b"x"])
    assert tool(listing(run, place)).splitlines()[-1] == "demo/t0/noop/log"
