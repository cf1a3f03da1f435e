"""One maker at a time for each file of the store, and what makers leave half when they are killed.

Locks of ``filelock`` are locks of this kind, so both keep each other out; only here they are removed at the end.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

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
    try:
        handle = _taken(path, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in _NOT_WRITABLE:
            raise
        words = f"{path.parent} cannot be written: {os.strerror(error.errno)}; what is not there is not made"
        raise Conclusion("base-unavailable", words) from None
    try:
        yield
    finally:
        _give_back(path, handle)


@contextmanager
def locked_now(path: Path) -> Iterator[bool]:
    """Hold the lock file ``path`` if nobody else does, and tell whether it is held. Raises OSError; see ``locked``."""
    try:
        handle = _taken(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
        return
    try:
        yield True
    finally:
        _give_back(path, handle)


def _taken(path: Path, how: int) -> int | None:
    """Return an open lock file that is locked, and is the one at ``path``; None where there are no locks.

    Raises OSError.
    """
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, how)
            if _is_at(path, handle):
                return handle
        except BaseException as error:
            os.close(handle)
            if isinstance(error, OSError) and error.errno in _NO_LOCKS:
                return None
            raise
        # Whoever held it removed it meanwhile, and somebody else may hold another: filelock would go on with this one.
        os.close(handle)


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _give_back(path: Path, handle: int | None) -> None:
    if handle is None:
        return
    # Removed first: who waits for it sees that it is gone.
    with suppress(OSError):
        path.unlink()
    os.close(handle)


def half_name(final: Path) -> Path:
    """Return the hidden name under which this process makes ``final`` before it is renamed."""
    return final.with_name(f".{final.name}.{_host()}.{os.getpid()}.{secrets.token_hex(4)}")


def write_whole(target: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file whole or not at all, with these permissions (None: those that new files get). Raises OSError."""
    half = half_name(target)
    try:
        with half.open("xb") as file:
            file.write(content)
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        half.replace(target)
    finally:
        half.unlink(missing_ok=True)


def sweep_half(folder: Path) -> int:
    """Remove what killed makers left in a folder: half files and locks that nobody holds; return how many."""
    swept = 0
    for path in folder.glob(".*.*.*.*"):
        if _is_left(path):
            path.unlink(missing_ok=True)
            swept += 1
    for path in folder.glob("*.lock"):
        with suppress(OSError), locked_now(path) as held:
            swept += held
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
