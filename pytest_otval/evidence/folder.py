"""What of a folder becomes evidence: regular files, in a fixed order, within limits. It may hold anything."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pytest_otval.task.reading import KINDS, NotReadableError, open_regular

MAX_FILES = 2000
MAX_FILE_BYTES = 16 << 20
"""Of a longer file the first and the last half of this are kept."""
MAX_BYTES = 256 << 20
"""Of all files of one entry together."""
LEFT_OUT = "left-out.txt"
"""The file of an entry that tells what is not in it, and why."""
_MAX_LINES = 100


@dataclass(frozen=True, slots=True)
class Kept:
    """A folder (``data`` is None) or a file."""

    name: str
    """Relative path with ``/``; bytes that are no UTF-8 are surrogates, as os.fsdecode gives them."""
    data: bytes | None
    mtime: int
    """Seconds since 1970."""


@dataclass(slots=True)
class _Budget:
    files: int
    bytes: int
    left_out: list[str] = field(default_factory=list)
    more: int = 0

    def leave_out(self, name: str, why: str) -> None:
        if len(self.left_out) < _MAX_LINES:
            self.left_out.append(f"{name!r}: {why}")
        else:
            self.more += 1


def kept(folder: Path) -> Iterator[Kept]:
    """Yield what is kept of a folder: parents before children, names in the order of their bytes.

    Links are never followed. They and what is no regular file are left out and named in a last file, ``LEFT_OUT``,
    with what could not be read. Raises nothing for what is in the folder, OSError where it is none.
    """
    budget = _Budget(MAX_FILES, MAX_BYTES)
    pending = _entries(folder, "")
    while pending:
        path, name = pending.pop()
        try:
            yield from _one(path, name, budget, pending)
        except (OSError, NotReadableError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            budget.leave_out(name, words or type(error).__name__)
    if budget.left_out:
        lines = [*budget.left_out, *([f"and {budget.more} more"] if budget.more else [])]
        yield Kept(LEFT_OUT, "".join(f"{line}\n" for line in lines).encode(errors="backslashreplace"), 0)


def _one(path: Path, name: str, budget: _Budget, pending: list[tuple[Path, str]]) -> Iterator[Kept]:
    facts = path.lstat()
    kind = stat.S_IFMT(facts.st_mode)
    if kind not in (stat.S_IFDIR, stat.S_IFREG):
        goal = f" to {str(path.readlink())!r}" if kind == stat.S_IFLNK else ""
        budget.leave_out(name, f"is {KINDS.get(kind, 'no regular file')}{goal}")
    elif budget.files == 0:
        budget.leave_out(name, f"more than {MAX_FILES} files")
    elif name == LEFT_OUT:
        budget.leave_out(name, "has the name of this file")
    else:
        budget.files -= 1
        if kind == stat.S_IFDIR:
            inside = _entries(path, f"{name}/")
            yield Kept(name, None, int(facts.st_mtime))
            pending += inside
            return
        data = _content(path, min(MAX_FILE_BYTES, budget.bytes))
        # The line that tells of a cut may be over it.
        budget.bytes = max(0, budget.bytes - len(data))
        yield Kept(name, data, int(facts.st_mtime))


def _entries(folder: Path, prefix: str) -> list[tuple[Path, str]]:
    """Return the entries of a folder, the first to be taken last."""
    paths = sorted(folder.iterdir(), key=os.fsencode, reverse=True)
    return [(path, prefix + path.name) for path in paths]


def _content(path: Path, limit: int) -> bytes:
    with os.fdopen(open_regular(path), "rb") as file:
        data = file.read(limit + 1)
        if len(data) <= limit:
            return data
        size = os.fstat(file.fileno()).st_size
        half = limit // 2
        file.seek(max(half, size - half))
        tail = file.read(half)
        return b"%b\n[otval: %d bytes left out here]\n%b" % (data[:half], max(0, size - 2 * half), tail)
