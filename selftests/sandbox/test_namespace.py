import os
import stat
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.sandbox.namespace import FilesOfContainers

FILES = FilesOfContainers(maps_uids=False)
KB = 1024


@pytest.fixture
def hostile(tmp_path):
    """A folder as a task may leave it, beside one that no link may lead to."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"x" * 1024 * KB)
    (outside / "file").chmod(0)
    folder = tmp_path / "hostile"
    (folder / "locked" / "deeper").mkdir(parents=True)
    (folder / "locked" / "deeper" / "file").write_text("found")
    (folder / "-rf").write_text("x")
    (folder / "new\nline").write_text("x")
    os.mkfifo(folder / "fifo")
    (folder / "loop").symlink_to("loop")
    (folder / "out").symlink_to(outside)
    (folder / "file").symlink_to(outside / "file")
    (folder / "locked" / "deeper" / "file").chmod(0)
    (folder / "locked" / "deeper").chmod(0o100)
    (folder / "locked").chmod(0)
    yield folder
    subprocess.run(["chmod", "-R", "u+rwX", tmp_path], check=True)


def outside_is_untouched(folder):
    facts = (folder.parent / "outside" / "file").stat()
    return (facts.st_mode & 0o777, facts.st_size) == (0, 1024 * KB)


def test_make_readable(hostile):
    FILES.make_readable(hostile)
    if os.getuid() != 0:
        assert (hostile / "locked" / "deeper").stat().st_mode & 0o700 == 0o700
    assert (hostile / "locked" / "deeper" / "file").read_text() == "found"
    assert outside_is_untouched(hostile)


def test_size_counts_what_is_inside(hostile):
    assert FILES.size(hostile) < 200 * KB
    (hostile / "big").write_bytes(b"x" * 500 * KB)
    os.link(hostile / "big", hostile / "big-again")
    assert 500 * KB <= FILES.size(hostile) < 700 * KB


def touched(folder, most=1 << 20):
    since, target = folder.parent / "since", folder.parent / "target"
    since.touch()
    os.utime(since, (0, 0))
    FILES.touched(folder, since, target, most)
    return target.read_bytes()


def test_touched_lists_and_follows_nothing(hostile):
    entries = set(touched(hostile).split(b"\0"))
    assert {
        b"d locked",
        b"f locked/deeper/file",
        b"f -rf",
        b"f new\nline",
        b"p fifo",
        b"l loop",
        b"l out",
        b"l file",
        b"",
    } <= entries
    assert not [entry for entry in entries if b"out/" in entry]
    assert b"! " not in entries
    assert outside_is_untouched(hostile)


def test_touched_says_that_it_could_not_look(tmp_path):
    assert b"! \0" in touched(tmp_path / "none")


def test_touched_changes_nothing(hostile):
    touched(hostile)
    assert (hostile / "locked").stat().st_mode & 0o777 == 0


def test_touched_is_bounded(tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(300):
        (folder / f"{number:0100}").touch()
    assert len(touched(folder, 5000)) == 5000


def test_touched_since(tmp_path):
    folder, since = tmp_path / "f", tmp_path / "since"
    folder.mkdir()
    for name in ("before", "changed", "backdated"):
        (folder / name).touch()
    time.sleep(0.02)
    since.touch()
    time.sleep(0.02)
    (folder / "changed").chmod(0o600)
    (folder / "backdated").write_text("x")
    os.utime(folder / "backdated", (0, 0))
    FILES.touched(folder, since, tmp_path / "target", 1000)
    assert sorted(filter(None, (tmp_path / "target").read_bytes().split(b"\0"))) == [b"f backdated", b"f changed"]


def test_size_of_what_is_sparse(tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    assert FILES.size(tmp_path) < 100 * KB


def test_folders_deeper_than_any_path(tmp_path):
    folder = tmp_path / "deep"
    folder.mkdir()
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(2500):
        os.mkdir("d", dir_fd=handle)
        above, handle = handle, os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(above)
    os.close(handle)
    assert FILES.size(folder) > 0
    FILES.make_readable(folder)
    FILES.remove(folder)
    assert not folder.exists()


def test_remove(hostile):
    FILES.remove(hostile)
    assert not hostile.exists()
    assert outside_is_untouched(hostile)
    FILES.remove(hostile)


def test_remove_of_what_is_no_folder(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    for name in ("pipe", "file", "nothing"):
        FILES.remove(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_closed_to_its_owner(tmp_path):
    """Its names, of whatever bytes, and a copy of what is in it; nothing is opened for good."""
    closed = tmp_path / "closed"
    closed.mkdir()
    odd = os.fsencode(closed) + b"/\xff\n"
    os.close(os.open(odd, os.O_CREAT | os.O_WRONLY, 0))
    closed.chmod(0)
    assert FILES.names(closed) == [os.fsdecode(b"\xff\n")]
    FILES.copy(closed, tmp_path / "copy")
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("closed", "copy")] == [0, 0]
    assert FILES.names(tmp_path / "copy") == [os.fsdecode(b"\xff\n")]


def test_what_a_folder_holds(tmp_path):
    (tmp_path / "logs" / "artifacts").mkdir(parents=True)
    assert not FILES.holds(tmp_path, ["logs", "artifacts"])
    (tmp_path / "logs" / "artifacts" / ".wh..wh..opq").touch()
    assert not FILES.holds(tmp_path, ["logs", "artifacts"])
    os.mkfifo(tmp_path / "logs" / "artifacts" / "pipe")
    assert FILES.holds(tmp_path, ["logs", "artifacts"])
    assert not FILES.holds(tmp_path, ["logs", "no"])
    (tmp_path / "link").symlink_to(tmp_path / "logs")
    assert not FILES.holds(tmp_path, ["link", "artifacts"])
    assert not FILES.holds(tmp_path, ["logs", "artifacts", "pipe"])


def test_names_and_copies(hostile, tmp_path):
    """As they are: links as links, a FIFO as one, and without a wait for it."""
    source = tmp_path / "source"
    (source / "folder").mkdir(parents=True)
    (source / "folder" / "link").symlink_to(hostile)
    os.mkfifo(source / "pipe")
    assert (sorted(FILES.names(source)), FILES.names(tmp_path / "nothing")) == (["folder", "pipe"], [])
    FILES.copy(source, tmp_path / "target")
    assert (tmp_path / "target" / "folder" / "link").readlink() == hostile
    assert stat.S_ISFIFO((tmp_path / "target" / "pipe").lstat().st_mode)
    FILES.copy(tmp_path / "nothing", tmp_path / "none")
    assert not os.path.lexists(tmp_path / "none")
    with pytest.raises(OSError, match="cannot create"):
        FILES.copy(source, tmp_path / "no" / "such")


def test_remove_of_a_link_leaves_its_goal(hostile):
    link = hostile.parent / "link"
    link.symlink_to(hostile)
    FILES.remove(link)
    assert not os.path.lexists(link)
    assert hostile.exists()


@given(st.lists(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20)))
def test_any_name_can_be_removed(tmp_path_factory, names):
    folder = tmp_path_factory.mktemp("names", numbered=True)
    for name in names:
        if name not in (".", ".."):
            (folder / name).write_text("x")
    FILES.make_readable(folder)
    FILES.remove(folder)
    assert not folder.exists()
