"""The archive of one writer."""

from __future__ import annotations

import fcntl
import os
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from pytest_otval.evidence.folder import Kept, kept
from pytest_otval.evidence.members import copy_member, may_append, whole_end, write_member
from pytest_otval.evidence.names import FOLDER, parsed

SUFFIX = ".tar.gz"


class Archive:
    """Appends entries to ``RUN/evidence/WRITER.tar.gz``, which is made with the first.

    A writer that goes on with an archive cuts off what a killed one left half. While another process still has the
    archive open, a file of its own with a number in its name is used.
    """

    def __init__(self, run: Path, writer: str) -> None:
        self._run = run
        self._writer = writer
        self._handle: int | None = None
        self._path = Path()
        self._end = 0

    def add(self, folder: Path, name: str) -> str:
        """Append the files of a folder under ``name``, ``demo/answer-file/oracle`` for one, and return their place.

        The folder stays. Raises OSError, for one where the disk is full: what was in the archive before is untouched,
        and the next call writes where this one began.
        """
        if self._handle is None:
            self._open()
        assert self._handle is not None
        try:
            length = write_member(self._handle, self._end, _tar(folder, name))
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._handle, self._end)
            raise
        return self._placed(length)

    def take(self, run: Path, place: str) -> str:
        """Append an entry of another run's archive as it is, and return its new place; ``sync`` makes it durable.

        Raises EvidenceError where the other archive does not hold it, OSError as ``add`` does.
        """
        if self._handle is None:
            self._open()
        assert self._handle is not None
        try:
            length = copy_member(*parsed(run, place), self._handle, self._end)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._handle, self._end)
            raise
        return self._placed(length)

    def sync(self) -> None:
        """Return once all that was taken is on the disk. Raises OSError."""
        if self._handle is not None:
            os.fdatasync(self._handle)

    def _placed(self, length: int) -> str:
        """Return the place of what was written at the end, which is then behind it."""
        place = f"{self._path.relative_to(self._run)}@{self._end}+{length}"
        self._end += length
        return place

    def close(self) -> None:
        """Let other processes have the archive."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _open(self) -> None:
        folder = self._run / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        for number in count(1):
            path = folder / f"{self._writer}{f'-{number}' if number > 1 else ''}{SUFFIX}"
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
            try:
                if _lock(handle) and may_append(handle):
                    self._end = whole_end(handle)
                    os.ftruncate(handle, self._end)
                    self._handle, self._path = handle, path
                    return
            finally:
                if self._handle is None:
                    os.close(handle)


def _lock(handle: int) -> bool:
    """Take the file for this process; the kernel gives it back when the process ends."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _tar(folder: Path, name: str) -> Iterator[bytes]:
    """Yield a tar of the folder without its end blocks, so that the next one may follow."""
    yield from _member(Kept(name, None, int(folder.stat().st_mtime)))
    for entry in kept(folder):
        yield from _member(Kept(f"{name}/{entry.name}", entry.data, entry.mtime))


def _member(entry: Kept) -> Iterator[bytes]:
    info = tarfile.TarInfo(entry.name)
    info.mtime = entry.mtime
    if entry.data is None:
        info.type, info.mode = tarfile.DIRTYPE, 0o755
    else:
        info.size = len(entry.data)
    yield info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    if entry.data is not None:
        yield entry.data
        yield bytes(-len(entry.data) % tarfile.BLOCKSIZE)
