"""Locks and half files of the store."""

import errno
import os
import socket
import threading
import time
from pathlib import Path

import psutil
import pytest
from filelock import FileLock

from pytest_otval.images import locks
from pytest_otval.images.locks import OLD_SECONDS, half_name, locked, sweep_half

DEAD = next(pid for pid in range(4_000_000, 5_000_000) if not psutil.pid_exists(pid))


def half(folder, host, pid, age=0.0):
    path = folder / f".{'a' * 64}.sqfs.{host}.{pid}.00ff00ff"
    path.write_bytes(b"x")
    now = path.stat().st_mtime - age
    os.utime(path, (now, now))
    return path


def test_sweep_removes_what_a_killed_build_left_and_no_more(tmp_path):
    here = socket.gethostname().replace(".", "-")
    gone = [half(tmp_path, here, DEAD), half(tmp_path, "elsewhere", 7, OLD_SECONDS + 5), tmp_path / "dead.lock"]
    keep = [half(tmp_path, here, os.getpid()), half(tmp_path, "elsewhere", 8), tmp_path / "held.lock"]
    keep += [tmp_path / "abc.sqfs", tmp_path / "abc.json"]
    for path in (gone[2], *keep[2:]):
        path.write_bytes(b"")
    with FileLock(tmp_path / "held.lock"):
        assert sweep_half(tmp_path) == len(gone)
    assert sorted(tmp_path.iterdir()) == sorted(keep)


def test_a_half_name_is_swept_once_its_maker_is_dead(tmp_path, monkeypatch):
    path = half_name(tmp_path / "image.sqfs")
    path.write_bytes(b"")
    assert sweep_half(tmp_path) == 0
    monkeypatch.setattr(psutil, "pid_exists", lambda pid: pid != os.getpid())
    assert sweep_half(tmp_path) == 1


def test_two_half_names_differ(tmp_path):
    assert half_name(tmp_path / "a") != half_name(tmp_path / "a")


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_locks_work_is_done_twice_at_worst(tmp_path, monkeypatch, number):
    def lockless(handle, how):
        raise OSError(number, "no locks")

    monkeypatch.setattr(locks.fcntl, "flock", lockless)
    with locked(tmp_path / "x.lock"), locked(tmp_path / "x.lock"):
        pass


def test_other_errors_of_a_lock_are_told(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError), locked(tmp_path / "file" / "x.lock"):
        pass


def test_a_lock_leaves_no_file(tmp_path):
    with locked(tmp_path / "x.lock"):
        assert (tmp_path / "x.lock").exists()
    assert not list(tmp_path.iterdir())


def test_never_two_at_once(tmp_path, monkeypatch):
    """Though each removes the lock file at its end: who waits for it must not go on with a file that is gone."""
    unlink = Path.unlink
    inside, most = [], []

    def slowly(path, missing_ok=False):
        time.sleep(0.1)
        unlink(path, missing_ok)

    def work(begin, seconds):
        time.sleep(begin)
        with locked(tmp_path / "x.lock"):
            inside.append(1)
            most.append(len(inside))
            time.sleep(seconds)
            inside.pop()

    monkeypatch.setattr(Path, "unlink", slowly)
    workers = [threading.Thread(target=work, args=times) for times in ((0, 0.05), (0.02, 0.3), (0.25, 0.01))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (most, list(tmp_path.iterdir())) == ([1, 1, 1], [])
