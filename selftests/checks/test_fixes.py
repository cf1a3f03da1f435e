"""Writing the changes that checks propose: whole, with their modes, and nowhere else."""

import os
import stat

import pytest

from pytest_otval.checks import fixes
from pytest_otval.checks.fixes import MAX_DIFF_LINES, NotFixedError, State, diff, make_change
from pytest_otval.checks.registry import Change

LIMIT = 1000


@pytest.fixture
def task(tmp_path):
    folder = tmp_path / "task"
    (folder / "tests").mkdir(parents=True)
    file = folder / "tests" / "test.sh"
    file.write_bytes(b"old\n")
    file.chmod(0o640)
    return folder


def test_content_is_replaced_and_the_mode_kept(task):
    before, after = make_change(task, Change("tests/test.sh", b"new\n"), LIMIT)
    file = task / "tests" / "test.sh"
    assert (before, after) == (State(b"old\n", 0o640), State(b"new\n", 0o640))
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"new\n", 0o640)
    assert [path.name for path in (task / "tests").iterdir()] == ["test.sh"]


@pytest.mark.parametrize(("mode", "becomes"), [(0o644, 0o755), (0o600, 0o700), (0o640, 0o750)])
def test_who_may_read_may_execute(task, mode, becomes):
    (task / "tests" / "test.sh").chmod(mode)
    before, after = make_change(task, Change("tests/test.sh", executable=True), LIMIT)
    assert (before.mode, after.mode) == (mode, becomes)
    assert stat.S_IMODE((task / "tests" / "test.sh").stat().st_mode) == becomes
    assert (task / "tests" / "test.sh").read_bytes() == b"old\n"


def outside(task):
    other = task.parent / "other"
    other.mkdir()
    (other / "test.sh").write_bytes(b"outside\n")
    return other


@pytest.mark.parametrize("change", [{"content": b"new\n"}, {"executable": True}])
@pytest.mark.parametrize("case", ["file", "folder", "task", "fifo", "hole", "dots"])
def test_nothing_is_changed_through_a_link_or_elsewhere(task, case, change):
    other = outside(task)
    before = stat.S_IMODE((other / "test.sh").stat().st_mode)
    root, path = task, "tests/test.sh"
    (task / "tests" / "test.sh").unlink()
    match case:
        case "file":
            (task / "tests" / "test.sh").symlink_to(other / "test.sh")
        case "folder":
            (task / "tests").rmdir()
            (task / "tests").symlink_to(other)
        case "task":
            root = task.parent / "link"
            (task / "tests" / "test.sh").write_bytes(b"outside\n")
            root.symlink_to(task)
        case "fifo":
            os.mkfifo(task / "tests" / "test.sh")
        case "dots":
            path = "tests/../../other/test.sh"
    with pytest.raises(NotFixedError):
        make_change(root, Change(path, **change), LIMIT)
    assert (other / "test.sh").read_bytes() == b"outside\n"
    assert stat.S_IMODE((other / "test.sh").stat().st_mode) == before


def test_a_file_of_several_names_gets_one_of_its_own(task):
    twin = task.parent / "twin"
    os.link(task / "tests" / "test.sh", twin)
    make_change(task, Change("tests/test.sh", b"new\n"), LIMIT)
    assert (twin.read_bytes(), (task / "tests" / "test.sh").read_bytes()) == (b"old\n", b"new\n")


def test_the_mode_of_a_file_of_several_names_stays(task):
    os.link(task / "tests" / "test.sh", task.parent / "twin")
    with pytest.raises(NotFixedError, match="several names"):
        make_change(task, Change("tests/test.sh", executable=True), LIMIT)


def test_what_changed_meanwhile_is_left_alone(task, monkeypatch):
    file = task / "tests" / "test.sh"
    monkeypatch.setattr(fixes.os, "fsync", lambda handle: file.write_bytes(b"somebody else's\n"))
    with pytest.raises(NotFixedError, match="changed meanwhile"):
        make_change(task, Change("tests/test.sh", b"new\n"), LIMIT)
    assert file.read_bytes() == b"somebody else's\n"
    assert [path.name for path in (task / "tests").iterdir()] == ["test.sh"]


def test_large_files_only_change_their_mode(task):
    (task / "tests" / "test.sh").write_bytes(b"x" * (LIMIT + 1))
    with pytest.raises(NotFixedError, match="too large"):
        make_change(task, Change("tests/test.sh", b"new\n"), LIMIT)
    before, after = make_change(task, Change("tests/test.sh", executable=True), LIMIT)
    assert (before.content, after.mode) == (None, 0o750)


def test_a_diff_shows_carriage_returns_and_modes():
    text = diff("a.sh", State(b"one\r\ntwo\r\n", 0o644), State(b"one\ntwo\n", 0o755))
    assert text.split("\n")[:5] == ["--- a/a.sh", "+++ b/a.sh", "old mode 100644", "new mode 100755", "@@ -1,2 +1,2 @@"]
    assert "-one\\r\n" in text
    assert "+one\n" in text


def test_a_long_diff_is_cut_and_says_so():
    before = "".join(f"{number}\r\n" for number in range(1000)).encode()
    lines = diff("a", State(before, 0o644), State(before.replace(b"\r", b""), 0o644)).split("\n")
    assert len(lines) == MAX_DIFF_LINES + 1
    assert lines[-1].startswith("... and ")
