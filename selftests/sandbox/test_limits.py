import os
import subprocess
import sys

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.sandbox.limits import CappedLog, cores, pinned, pss_bytes


def written(path, cap, chunks):
    log = CappedLog(path, cap)
    for chunk in chunks:
        log.write(chunk)
    log.close()
    return path.read_bytes()


def test_log_below_its_cap_is_whole(tmp_path):
    assert written(tmp_path / "new" / "log", 10, [b"12345", b"", b"67890"]) == b"1234567890"


def test_log_keeps_head_and_tail(tmp_path):
    data = written(tmp_path / "log", 6, [b"abcdefghij"])
    assert data == b"abc\n[otval: 4 bytes left out here]\nhij"


@given(st.integers(1, 40).map(lambda half: 2 * half), st.lists(st.binary(max_size=30), max_size=20))
def test_log_is_head_tail_and_what_was_dropped(tmp_path_factory, cap, chunks):
    data = written(tmp_path_factory.getbasetemp() / "capped.log", cap, chunks)
    whole, half = b"".join(chunks), cap // 2
    if len(whole) <= cap:
        assert data == whole
    else:
        note = f"\n[otval: {len(whole) - cap} bytes left out here]\n".encode()
        assert data == whole[:half] + note + whole[len(whole) - half :]


def test_log_replaces_an_older_one(tmp_path):
    (tmp_path / "log").write_text("old")
    assert written(tmp_path / "log", 10, []) == b""


@pytest.mark.parametrize(
    ("cpus", "granted", "expected"),
    [
        (None, None, {2, 3, 7}),
        (1, None, {2}),
        (64, None, {2, 3, 7}),
        (None, {5, 6}, {5, 6}),
        (0.5, {5, 6}, {5}),
        (1.5, {9, 5, 6}, {5, 6}),
        (3, {5, 6}, {5, 6}),
    ],
)
def test_cores(monkeypatch, cpus, granted, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 3, 7})
    assert cores(cpus, granted) == expected


def test_pinned_with_what_it_starts():
    before = os.sched_getaffinity(0)
    one = {min(before)}
    argv = [sys.executable, "-c", "import os; print(*os.sched_getaffinity(0))"]
    with pytest.raises(ZeroDivisionError), pinned(one):
        assert subprocess.run(argv, capture_output=True, text=True).stdout.split() == [str(min(before))]
        raise ZeroDivisionError
    assert os.sched_getaffinity(0) == before


def test_memory_of_processes_that_ended_is_nothing():
    class Ended:
        pid = 2**30

    me = psutil.Process()
    assert pss_bytes([Ended()]) == 0
    assert 0 < pss_bytes([me, Ended()]) <= me.memory_info().rss * 2
