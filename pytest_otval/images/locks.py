"""One maker at a time for each file of the store, and what makers leave half when they are killed."""

from __future__ import annotations

import errno
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from pytest_otval.core import Conclusion

OLD_SECONDS = 2 * 86400
"""A half file of another machine that nobody touched for so long has no maker any more."""

_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
_NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``, which is removed at the end; whoever waited finds what was made.

    Where the file system has no locks, as some mounts of NFS and Lustre, two makers may do the same work at once:
    every file is made under a name of its own and renamed, so the last wins, and each is right. Raises Conclusion
    ``base-unavailable`` where the folder cannot be written, OSError.
    """
    lock = FileLock(path)
    try:
        lock.acquire()
    except NotImplementedError:
        yield
        return
    except OSError as error:
        if error.errno in _NOT_WRITABLE:
            words = f"{path.parent} cannot be written: {os.strerror(error.errno)}; what is not there is not made"
            raise Conclusion("base-unavailable", words) from None
        if error.errno not in _NO_LOCKS:
            raise
        yield
        return
    try:
        yield
    finally:
        lock.release()
        with suppress(OSError):
            path.unlink()


def half_name(final: Path) -> Path:
    """Return the hidden name under which this process makes ``final`` before it is renamed."""
    return final.with_name(f".{final.name}.{_host()}.{os.getpid()}.{secrets.token_hex(4)}")


def sweep_half(folder: Path) -> int:
    """Remove what killed makers left in a folder: half files and locks that nobody holds; return how many."""
    swept = 0
    for path in folder.glob(".*.*.*.*"):
        if _is_left(path):
            path.unlink(missing_ok=True)
            swept += 1
    for path in folder.glob("*.lock"):
        with suppress(Timeout, OSError, NotImplementedError), FileLock(path, timeout=0):
            path.unlink(missing_ok=True)
            swept += 1
    return swept


def _is_left(half: Path) -> bool:
    host, pid, _ = half.name.rsplit(".", 3)[-3:]
    if host == _host() and pid.isdigit():
        return not psutil.pid_exists(int(pid))
    with suppress(OSError):
        return time.time() - half.stat().st_mtime > OLD_SECONDS
    return False


def _host() -> str:
    return socket.gethostname().replace(".", "-")
