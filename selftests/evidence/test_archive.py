"""Nothing that was added is lost, whatever happens to the writer, and nothing hostile is kept."""

import errno
import gzip
import os
import signal
import socket
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_otval.evidence import Archive, extract, files, folder
from selftests.evidence.conftest import LOGS, NAME, archive_of, fill, listing, tool

# --- what goes in comes out -----------------------------------------------------------------------------------------


def test_files_come_back_in_order(tmp_path, add):
    found = list(files(tmp_path, add()))
    assert dict(found) == LOGS
    assert [name for name, _ in found] == ["agent/oracle.txt", "result.json", "verifier/empty", "verifier/reward.txt"]
    assert (tmp_path / "work").is_dir(), "the folder stays"


NAMES = st.binary(min_size=1, max_size=300).filter(
    lambda name: not {b"/"[0], 0} & set(name) and name not in (b".", b"..")
)
FOLDERS = st.dictionaries(st.lists(NAMES, min_size=1, max_size=3).map(tuple), st.binary(max_size=600), max_size=6)


@given(FOLDERS)
@example({(b"a" * 255, b"b" * 255): b"", (b"\xff\n",): b"x"})
def test_any_names_and_contents_come_back(contents):
    with TemporaryDirectory() as name:
        run, written = Path(name), {}
        for parts, data in contents.items():
            path = Path(os.fsdecode(b"/".join(parts)))
            try:
                fill(run / "work", {str(path): data})
            except OSError:  # A name that is too long, or a file that is a folder elsewhere.
                continue
            written[str(path)] = data
        (run / "work").mkdir(exist_ok=True)
        archive = Archive(run, "main")
        place = archive.add(run / "work", NAME)
        archive.close()
        written.pop("left-out.txt", None)
        assert dict(files(run, place)) == written
        extract(run, place, run / "out")
        assert {str(path.relative_to(run / "out")) for path in (run / "out").rglob("*") if path.is_file()} == set(
            written
        )


def test_an_empty_folder_is_an_entry(tmp_path, add):
    assert list(files(tmp_path, add({}))) == []


def test_equal_folders_have_equal_bytes(tmp_path):
    for run in ("a", "b"):
        names = [*LOGS, *(f"f{number}" for number in range(20))]
        work = fill(
            tmp_path / run / "work", {name: LOGS.get(name, b"x") for name in (names if run == "a" else names[::-1])}
        )
        for path in (work, *work.rglob("*")):
            os.utime(path, (1e9, 1e9))
        archive = Archive(tmp_path / run, "main")
        archive.add(work, NAME)
        archive.close()
    first, second = ((tmp_path / run / "evidence" / "main.tar.gz").read_bytes() for run in "ab")
    assert first == second


def test_standard_tools_read_it(tmp_path):
    places = archive_of(tmp_path, [b"one\n", b"two\n" * 100_000, b"three\n"])
    path = tmp_path / "evidence" / "main.tar.gz"
    listed = tool(f"gzip -t {path}; tar tzf {path}").splitlines()
    assert listed == [f"demo/t{number}/noop/{name}" for number in range(3) for name in ("", "log")]
    assert tool(f"tar xzOf {path} demo/t2/noop/log") == "three\n"
    with tarfile.open(path) as tar:
        assert tar.getnames() == [name.rstrip("/") for name in listed]
    assert [tool(listing(tmp_path, place)).splitlines()[-1] for place in places] == listed[1::2]


def test_many_entries_are_one_file(tmp_path):
    archive_of(tmp_path, [b"x"] * 300)
    assert os.listdir(tmp_path / "evidence") == ["main.tar.gz"]


def test_nothing_added_makes_nothing(tmp_path):
    Archive(tmp_path, "main").close()
    assert os.listdir(tmp_path) == []


# --- what a task may have written -----------------------------------------------------------------------------------


def test_what_is_no_file_is_left_out_and_named(tmp_path, add):
    work = fill(tmp_path / "work", {"kept": b"x", "secret/key": b"no"})
    (tmp_path / "outside").write_text("host")
    (work / "link").symlink_to(tmp_path / "outside")
    (work / "folder-link").symlink_to("secret")
    os.mkfifo(work / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(work / "socket"))
    found = dict(files(tmp_path, add({})))
    listener.close()
    assert found.pop("left-out.txt").decode().splitlines() == [
        "'folder-link': is a link to 'secret'",
        f"'link': is a link to '{tmp_path}/outside'",
        "'pipe': is a FIFO",
        "'socket': is a socket",
    ]
    assert found == {"kept": b"x", "secret/key": b"no"}


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_named(tmp_path, add):
    work = fill(tmp_path / "work", {"a": b"x", "closed/b": b"x"})
    (work / "a").chmod(0)
    (work / "closed").chmod(0)
    found = dict(files(tmp_path, add({})))
    (work / "closed").chmod(0o755)
    assert set(found) == {"left-out.txt"}
    assert found["left-out.txt"].count(b"ermission denied") == 2


def test_huge_files_are_cut_in_the_middle(tmp_path, add):
    work = fill(tmp_path / "work", {"log": b"first"})
    with (work / "log").open("r+b") as file:
        file.truncate(1 << 40)
        file.seek(-4, os.SEEK_END)
        file.write(b"last")
    data = dict(files(tmp_path, add({})))["log"]
    assert data.startswith(b"first\0") and data.endswith(b"\0last")
    assert b"\n[otval: %d bytes left out here]\n" % ((1 << 40) - folder.MAX_FILE_BYTES) in data
    assert len(data) < folder.MAX_FILE_BYTES + 100


@pytest.mark.parametrize("size", [9, 10, 11, 19, 20, 21])
def test_cut_around_the_limit(tmp_path, add, monkeypatch, size):
    monkeypatch.setattr(folder, "MAX_FILE_BYTES", 10)
    data = dict(files(tmp_path, add({"log": bytes(range(65, 65 + size))})))["log"]
    whole = bytes(range(65, 65 + size))
    assert data == (
        whole if size <= 10 else whole[:5] + b"\n[otval: %d bytes left out here]\n" % (size - 10) + whole[-5:]
    )


def test_number_and_sum_are_limited(tmp_path, add, monkeypatch):
    monkeypatch.setattr(folder, "MAX_FILES", 3)
    monkeypatch.setattr(folder, "MAX_BYTES", 12)
    found = dict(files(tmp_path, add({"a": b"x" * 10, "b": b"12345678", "c": b"", "d": b"", "e": b""})))
    assert found["a"] == b"x" * 10
    assert found["b"] == b"1\n[otval: 6 bytes left out here]\n8"
    assert set(found) == {"a", "b", "c", "left-out.txt"}
    assert found["left-out.txt"] == b"'d': more than 3 files\n'e': more than 3 files\n"


def test_list_of_what_is_left_out_is_short(tmp_path, add):
    work = fill(tmp_path / "work", {})
    for number in range(150):
        (work / f"{number:03}").symlink_to("x")
    lines = dict(files(tmp_path, add({})))["left-out.txt"].decode().splitlines()
    assert (len(lines), lines[-1]) == (101, "and 50 more")


def test_own_name_of_the_list_of_what_is_left_out(tmp_path, add):
    found = dict(files(tmp_path, add({"left-out.txt": b"mine", "x/left-out.txt": b"kept"})))
    assert found == {"left-out.txt": b"'left-out.txt': has the name of this file\n", "x/left-out.txt": b"kept"}


# --- writers that die, disks that are full --------------------------------------------------------------------------

ENTRIES = [b"first\n" * 50, b"", b"third \xff\n" * 30]


def torn(data: bytes, places, whole: int):
    """Write an archive's damaged bytes, go on with it, and return what its places hold; ``whole`` must be intact."""
    with TemporaryDirectory() as name:
        run = Path(name)
        path = run / "evidence" / "main.tar.gz"
        path.parent.mkdir()
        path.write_bytes(data)
        archive = Archive(run, "main")
        place = archive.add(fill(run / "more", {"log": b"more"}), "demo/more/noop")
        archive.close()
        assert os.listdir(run / "evidence") == ["main.tar.gz"]
        assert dict(files(run, place)) == {"log": b"more"}
        for number in range(whole):
            assert dict(files(run, places[number])) == {"log": ENTRIES[number]}
        with tarfile.open(path) as tar:
            assert [info.name for info in tar if info.isdir()] == [
                *(f"demo/t{n}/noop" for n in range(whole)),
                "demo/more/noop",
            ]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of an archive with three entries, their places and the offsets behind them."""
    run = tmp_path_factory.mktemp("sound")
    places = archive_of(run, ENTRIES)
    data = (run / "evidence" / "main.tar.gz").read_bytes()
    return data, places, [sum(map(int, place.partition("@")[2].split("+"))) for place in places]


def test_cut_at_every_byte(sound):
    data, places, ends = sound
    for length in range(len(data) + 1):
        torn(data[:length], places, sum(1 for end in ends if end <= length))


@given(st.data())
def test_last_entry_that_is_not_what_was_written(sound, data):
    """A machine that lost its power may have an entry's length, but not all of its bytes."""
    whole, places, ends = sound
    begin = ends[1] + 24
    at = data.draw(st.integers(begin, ends[2] - 1))
    length = data.draw(st.integers(1, ends[2] - at))
    lost = whole[:at] + bytes(length) + whole[at + length :]
    torn(lost, places, 3 if same_content(lost, whole, ends[1]) else 2)


def same_content(lost: bytes, whole: bytes, at: int) -> bool:
    """Whether what follows an offset still unpacks to what was written, as it may: a copy from elsewhere in the zeros
    of a tar is the same copy.
    """
    try:
        return gzip.decompress(lost[at:]) == gzip.decompress(whole[at:])
    except (OSError, EOFError, zlib.error):
        return False


def test_damage_that_changes_no_content(sound, tmp_path):
    """Each byte of the last entry set to zero: wherever its content is the same, it is kept."""
    whole, places, ends = sound
    for at in range(ends[1] + 24, ends[2]):
        lost = whole[:at] + b"\0" + whole[at + 1 :]
        torn(lost, places, 3 if same_content(lost, whole, ends[1]) else 2)


def test_entry_that_was_being_written(sound):
    data, places, ends = sound
    length = slice(ends[1] + 16, ends[1] + 24)
    unfinished = bytearray(data)
    unfinished[length] = bytes(8)
    torn(bytes(unfinished), places, 2)
    torn(bytes(unfinished) + bytes(4096), places, 2)


def test_length_beyond_the_end_or_of_nothing(sound):
    data, places, ends = sound
    for length in (1, 31, ends[2] - ends[1] - 1, ends[2] - ends[1] + 1, 1 << 40, (1 << 64) - 1):
        wrong = bytearray(data)
        wrong[ends[1] + 16 : ends[1] + 24] = length.to_bytes(8, "little")
        torn(bytes(wrong), places, 2)


KILLED = """
import sys
from pathlib import Path
from pytest_otval.evidence import Archive
run = Path(sys.argv[1])
archive = Archive(run, "main")
while True:
    print(archive.add(run / "work", "demo/t/noop"), flush=True)
"""


@pytest.mark.parametrize("after", [1, 2, 5])
def test_killed_writer_loses_nothing_it_told(tmp_path, after):
    contents = {"log": os.urandom(3_000_000), "small": b"x"}
    fill(tmp_path / "work", contents)
    places = []
    for _ in range(3):
        argv = [sys.executable, "-c", KILLED, str(tmp_path)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            places += [writer.stdout.readline().strip() for _ in range(after)]
            writer.send_signal(signal.SIGKILL)
            places += writer.stdout.read().split("\n")[:-1]
    assert len(places) == len(set(places)) >= 3 * after
    for place in places:
        assert dict(files(tmp_path, place)) == contents
    assert os.listdir(tmp_path / "evidence") == ["main.tar.gz"]
    Archive(tmp_path, "main").add(tmp_path / "work", "demo/t/noop")
    tool(f"gzip -t {tmp_path}/evidence/main.tar.gz")


LIMITED = """
import resource, sys
from pathlib import Path
from pytest_otval.evidence import Archive
run = Path(sys.argv[1])
archive = Archive(run, "main")
print(archive.add(run / "small", "demo/a/noop"))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    archive.add(run / "big", "demo/b/noop")
except OSError as error:
    print(error.errno)
print((run / "evidence" / "main.tar.gz").stat().st_size)
print(archive.add(run / "small", "demo/c/noop"))
"""


def test_write_that_fails_loses_only_its_entry(tmp_path):
    fill(tmp_path / "small", {"log": b"x"})
    fill(tmp_path / "big", {"log": os.urandom(1_000_000)})
    argv = [sys.executable, "-c", LIMITED, str(tmp_path)]
    first, error, size, second = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    assert int(error) == errno.EFBIG
    assert second.startswith(f"evidence/main.tar.gz@{size}+"), "the torn bytes are gone"
    assert [dict(files(tmp_path, place)) for place in (first, second)] == [{"log": b"x"}] * 2


@pytest.mark.integration
def test_full_disk_loses_only_its_entry(tmp_path, small_scratch):
    big = fill(tmp_path / "big", {f"log{number}": os.urandom(5_000_000) for number in range(6)})
    with TemporaryDirectory(dir=small_scratch) as name:
        run = Path(name)
        archive = Archive(run, "main")
        first = archive.add(fill(tmp_path / "few", {"log": b"1"}), "demo/a/noop")
        with pytest.raises(OSError, match="No space left"):
            archive.add(big, "demo/b/noop")
        second = archive.add(tmp_path / "few", "demo/c/noop")
        archive.close()
        assert [dict(files(run, place)) for place in (first, second)] == [{"log": b"1"}] * 2


def test_interrupted_call_leaves_no_trace(tmp_path, monkeypatch):
    archive = Archive(tmp_path, "main")
    first = archive.add(fill(tmp_path / "work", {"log": b"x"}), NAME)
    size = (tmp_path / "evidence" / "main.tar.gz").stat().st_size

    def interrupted(path):
        yield folder.Kept("log", os.urandom(1 << 20), 0)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("pytest_otval.evidence.archive.kept", interrupted)
        archive.add(tmp_path / "work", NAME)
    assert (tmp_path / "evidence" / "main.tar.gz").stat().st_size == size
    second = archive.add(tmp_path / "work", NAME)
    assert [dict(files(tmp_path, place)) for place in (first, second)] == [{"log": b"x"}] * 2


def test_archive_that_another_process_has_open(tmp_path):
    work = fill(tmp_path / "work", {"log": b"x"})
    first, second, third = Archive(tmp_path, "main"), Archive(tmp_path, "main"), Archive(tmp_path, "main")
    places = [first.add(work, NAME), second.add(work, NAME), first.add(work, NAME)]
    second.close()
    places.append(third.add(work, NAME))
    assert sorted(os.listdir(tmp_path / "evidence")) == ["main-2.tar.gz", "main.tar.gz"]
    assert [dict(files(tmp_path, place)) for place in places] == [{"log": b"x"}] * 4


@pytest.mark.parametrize("data", [b"not ours", gzip.compress(b"not ours", mtime=0), bytes(100)])
def test_file_of_somebody_else_is_left_alone(tmp_path, add, data):
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "main.tar.gz").write_bytes(data)
    assert dict(files(tmp_path, add())) == LOGS
    assert (tmp_path / "evidence" / "main.tar.gz").read_bytes() == data
