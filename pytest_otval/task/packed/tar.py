"""Tasks in one tar archive, ``TASK/...`` each. The archive is gone through once for names, by its headers."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pytest_otval.task.packed.base import TASK_TOML, PackedSource, is_task_name, unusable
from pytest_otval.task.packed.tarball import GZIP_MAGIC, members, raw
from pytest_otval.task.packed.unpack import DamagedError, Entry, Kind, split_path


class TarSource(PackedSource):
    """``tasks.tar``."""

    def __init__(self, dataset: Path, file: Path) -> None:
        super().__init__(dataset)
        self._file = file
        self._ranges: dict[str, list[tuple[int, int]]] = {}
        """Where the members of each task lie, by bytes: one piece, unless the archive mixes tasks."""

    def anchor(self, name: str) -> Path:
        """Return the archive."""
        return self._file

    def _read_names(self) -> tuple[set[str], set[str]]:
        tasks: set[str] = set()
        folders: set[str] = set()
        try:
            with self._file.open("rb") as file:
                if file.read(len(GZIP_MAGIC)) == GZIP_MAGIC:
                    raise DamagedError("it is compressed, so no task in it can be reached")
                for path, is_folder, start, end in _scan(file):
                    parts = split_path(path)
                    name = parts[0].decode("utf-8", "surrogateescape") if parts else ""
                    if not is_task_name(name) or (len(parts) == 1 and not is_folder):
                        continue
                    folders.add(name)
                    if parts[1:] == [TASK_TOML]:
                        tasks.add(name)
                    self._add(name, start, end)
        except (DamagedError, OSError) as error:
            raise unusable(self._file, error) from None
        return tasks, folders - tasks

    def _add(self, name: str, start: int, end: int) -> None:
        pieces = self._ranges.setdefault(name, [])
        if pieces and pieces[-1][1] == start:
            start, _ = pieces.pop()
        pieces.append((start, end))

    def _entries(self, name: str) -> Iterator[Entry]:
        with self._file.open("rb") as file:
            for start, end in self._ranges[name]:
                for member in members(file, start, end):
                    yield member.entry(raw(name))


def _scan(file: BinaryIO) -> Iterator[tuple[bytes, bool, int, int]]:
    """Yield path, whether it is a folder, first byte and end of each member. Raises DamagedError.

    Of the usual headers only what is needed here is read, a tenth of the time that ``tarfile`` takes; it reads the
    others, and all of a task's when that is unpacked, and looks at checksums then.
    """
    position = 0
    while True:
        for member in members(file, position):
            yield member.name, member.kind is Kind.FOLDER, member.start, member.end
            position = member.end
            if (plain := _plain_member(file, position)) is not None:
                break
        else:
            return
        while plain is not None:
            path, is_folder, end = plain
            yield path, is_folder, position, end
            position = end
            plain = _plain_member(file, position)


_PLAIN_TYPES = (tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE)
_OCTAL = frozenset(b"01234567")


def _plain_member(file: BinaryIO, position: int) -> tuple[bytes, bool, int] | None:
    """Return path, whether it is a folder, and end of a member with one usual header; None for all others."""
    header = os.pread(file.fileno(), tarfile.BLOCKSIZE, position)
    # Fields as in POSIX.1-1988: name 0, size 124, type 156, magic 257, prefix of the name 345.
    kind = header[156:157]
    size = header[124:135]
    if header[257:262] != b"ustar" or kind not in _PLAIN_TYPES or header[345] or not _OCTAL.issuperset(size):
        return None
    blocks = -(-int(size, 8) // tarfile.BLOCKSIZE) if kind == tarfile.REGTYPE else 0
    return header[:100].partition(b"\0")[0], kind == tarfile.DIRTYPE, position + (1 + blocks) * tarfile.BLOCKSIZE
