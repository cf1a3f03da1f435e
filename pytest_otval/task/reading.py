"""Reading files of a task that may be anything: a link, a FIFO, a device, a folder, gigabytes."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Links are not followed, FIFOs never waited for."""


class NotReadableError(Exception):
    """The file cannot be read as a regular file; the text says what it is instead."""


KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_regular(path: Path | str | bytes) -> int:
    """Open a regular file for reading and return its descriptor; links are not followed, FIFOs never waited for.

    Raises NotReadableError; FileNotFoundError where there is nothing.
    """
    try:
        descriptor = os.open(path, OPEN_FLAGS)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotReadableError("is a link") from None
        raise NotReadableError(f"cannot be opened: {os.strerror(error.errno or 0)}") from None
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        raise NotReadableError(f"is {KINDS.get(kind, 'no regular file')}")
    return descriptor


def read_regular(path: Path | str, limit: int) -> bytes:
    """Return the bytes of a regular file of at most ``limit`` bytes.

    Raises NotReadableError where it is anything else; FileNotFoundError where there is nothing.
    """
    data = read_start(path, limit + 1)
    if len(data) > limit:
        raise NotReadableError(f"is larger than {limit} bytes")
    return data


def read_start(path: Path | str, most: int) -> bytes:
    """Return the first bytes of a regular file, at most so many.

    Raises NotReadableError where it is anything else, OSError where it cannot be read, FileNotFoundError where there
    is nothing.
    """
    handle = open_regular(path)
    try:
        return _read(handle, most)
    finally:
        os.close(handle)


def _read(handle: int, most: int) -> bytes:
    data = os.read(handle, min(most, 32 * 1024))
    pieces, left = [data], most - len(data)
    while data and left > 0:
        data = os.read(handle, min(left, 1024 * 1024))
        pieces.append(data)
        left -= len(data)
    return b"".join(pieces)


def is_regular(path: Path) -> bool:
    """Whether ``path`` is a regular file and no link."""
    return _kind(path) == stat.S_IFREG


def is_folder(path: Path) -> bool:
    """Whether ``path`` is a folder and no link."""
    return _kind(path) == stat.S_IFDIR


def _kind(path: Path) -> int | None:
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except (OSError, ValueError):
        return None


def target_within(path: Path, root: Path) -> Path | None:
    """Return what ``path`` leads to, links followed; None where that is nothing or lies outside ``root``."""
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None
    return target if target.is_relative_to(root.resolve()) else None
