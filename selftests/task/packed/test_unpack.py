"""Writing entries: what is kept, and what is refused before it does harm."""

import errno
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_otval.core import Conclusion
from pytest_otval.task.packed import unpack as module
from pytest_otval.task.packed.unpack import DamagedError, Entry, Kind, shown, unpack
from selftests.task.packed.helpers import entry, file, refusal, tree


@pytest.fixture
def target(tmp_path):
    """The folder to unpack to; beside it a file that must never change."""
    (tmp_path / "outside").write_text("untouched")
    yield tmp_path / "scratch" / "task"
    assert (tmp_path / "outside").read_text() == "untouched"
    assert sorted(path.name for path in tmp_path.iterdir()) in (["outside"], ["outside", "scratch"])


def refused(target, *entries) -> str:
    headline = refusal(unpack, entries, target)
    assert not target.exists()
    return headline


def test_all_kinds_are_made_with_plain_modes(target):

    entries = [
        entry("./", Kind.FOLDER),
        file("./a", b"one ", b"two", executable=True),
        file("deep//er/./b", b"x"),
        entry("deep", Kind.FOLDER),
        entry("empty/", Kind.FOLDER),
        entry("link", Kind.LINK, "/etc/passwd"),
        entry("up", Kind.LINK, "../../.."),
        entry("same", Kind.HARD_LINK, "./a"),
        entry("pipe", Kind.FIFO),
    ]
    unpack(entries, target)
    assert tree(target) == {
        "a": "file 755 one two",
        "deep": "folder 755",
        "deep/er": "folder 755",
        "deep/er/b": "file 644 x",
        "empty": "folder 755",
        "link": "link /etc/passwd",
        "pipe": "fifo 644",
        "same": "file 755 one two",
        "up": "link ../../..",
    }


def test_modes_do_not_depend_on_the_umask(target):
    before = os.umask(0o077)
    try:
        unpack([file("folder/file"), entry("pipe", Kind.FIFO)], target)
    finally:
        os.umask(before)
    assert tree(target) == {"folder": "folder 755", "folder/file": "file 644 ", "pipe": "fifo 644"}
    assert target.stat().st_mode & 0o777 == 0o755


def test_a_task_is_unpacked_anew(target):
    unpack([file("old"), entry("link", Kind.LINK, "..")], target)
    unpack([file("new")], target)
    assert tree(target) == {"new": "file 644 "}


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/etc/passwd", "has an absolute path"),
        ("//x", "has an absolute path"),
        ("../outside", "has .. in its path"),
        ("a/../../outside", "has .. in its path"),
        ("a/..", "has .. in its path"),
        ("a\0b", "has a zero byte in its path"),
        ("x" * 300, "cannot be made: File name too long"),
        ("x/" * 600, "has a path of more than 1024 bytes"),
        ("x/" * 65, "lies more than 64 folders deep"),
        ("", "occurs twice"),
        ("./.", "occurs twice"),
    ],
)
@pytest.mark.parametrize("kind", [Kind.FILE, Kind.LINK, Kind.FIFO, Kind.HARD_LINK])
def test_paths_that_are_refused(target, path, rule, kind):
    headline = refused(target, file("first"), entry(path, kind, "first"))
    assert headline == f"{shown(path.encode())} {rule}"


@pytest.mark.parametrize("kind", [Kind.SOCKET, Kind.DEVICE, Kind.SPARSE, Kind.UNKNOWN])
def test_kinds_that_are_refused(target, kind):
    assert refused(target, file("a"), entry("bad\nname", kind)) == f"bad\\nname is {kind}, which a task cannot have"


@pytest.mark.parametrize("pointing", ["/", "..", "../..", ".", "folder", "nowhere"])
@pytest.mark.parametrize("kind", [Kind.FILE, Kind.FOLDER, Kind.LINK, Kind.FIFO])
def test_nothing_is_written_through_a_link(target, pointing, kind):
    link = entry("link", Kind.LINK, pointing)
    assert refused(target, entry("folder", Kind.FOLDER), link, entry("link/outside", kind, "x")) == (
        "link/outside lies below link, which is a link"
    )
    assert refused(target, link, entry("link", kind, "x")) == "link occurs twice"


def test_nothing_lies_below_a_file(target):
    assert refused(target, file("a"), file("a/b")) == "a/b lies below a, which is a file"


@pytest.mark.parametrize("kind", [Kind.FILE, Kind.FOLDER, Kind.LINK, Kind.FIFO, Kind.HARD_LINK])
def test_no_entry_takes_the_place_of_another(target, kind):
    assert refused(target, file("a"), entry("./a", kind, "a")) == "./a occurs twice"
    assert "occurs twice" in refused(target, entry("a", Kind.FOLDER), entry("a", Kind.FOLDER))
    if kind is not Kind.FOLDER:
        assert "occurs twice" in refused(target, file("a/b"), entry("a", kind, "a/b"))


@pytest.mark.parametrize("to", ["link", "folder", "later", "../../outside", "/etc/passwd", "", "pipe", "self"])
def test_a_hard_link_is_to_a_file_before_it(target, tmp_path, to):
    before = [entry("folder", Kind.FOLDER), entry("link", Kind.LINK, "../../outside"), entry("pipe", Kind.FIFO)]
    assert refused(target, *before, entry("self", Kind.HARD_LINK, to), file("later")).startswith("self ")


def test_a_link_to_nothing_is_refused(target):
    assert refused(target, entry("a", Kind.LINK)) == "a is a link to nothing"
    assert refused(target, entry("a", Kind.LINK, "x\0y")) == "a is a link to nothing"
    assert "File name too long" in refused(target, entry("a", Kind.LINK, "x" * 5000))


def test_bombs_are_refused_by_what_is_written(target, monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    monkeypatch.setattr(module, "MAX_ENTRIES", 5)
    unpack([file("a", b"12345"), file("b", b"12345")], target)
    assert refused(target, file("a", b"12345"), file("b", b"123456")).startswith("b brings the task above")
    asked = []

    def endless():
        while True:
            asked.append(1)
            yield b"12345"

    assert "brings the task above" in refused(target, Entry(b"a", Kind.FILE, content=endless))
    assert len(asked) == 3
    unpack([file(str(number)) for number in range(5)], target)
    assert "5 that a task may have" in refused(target, *[file(str(number)) for number in range(6)])
    assert "5 that a task may have" in refused(target, file("a/b/c/d/e/f"))


def test_damage_is_the_tasks_fault_and_a_full_disk_the_machines(target):
    def damaged():
        yield b"x"
        raise DamagedError("it ends too early")

    headline = refused(target, Entry(b"a", Kind.FILE, content=damaged))
    assert headline == "the packed task cannot be read: it ends too early"

    def full():
        yield b"x"
        raise OSError(errno.ENOSPC, "full")

    with pytest.raises(Conclusion, match="OT_SCRATCH") as caught:
        unpack([Entry(b"a", Kind.FILE, content=full)], target)
    assert caught.value.reason == "host-disk-full"
    assert not target.exists()


NAMES = st.sampled_from([b"a", b"b", b"c", b"..", b".", b"", b"a/b", b"/", b"c/a", b"\xff"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(b"/".join)
ENTRIES = st.builds(
    Entry,
    path=PATHS,
    kind=st.sampled_from(Kind),
    executable=st.booleans(),
    target=st.one_of(PATHS, st.sampled_from([b"../../outside", b"/", b"a"])),
    content=st.just(lambda: iter([b"written"])),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(entries=st.lists(ENTRIES, max_size=8))
def test_whatever_the_entries_nothing_outside_changes(target, entries):
    try:
        unpack(entries, target)
    except Conclusion as conclusion:
        assert conclusion.reason == "bad-task"
        assert not target.exists()
    else:
        assert target.is_dir()
