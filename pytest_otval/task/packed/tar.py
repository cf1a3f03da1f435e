"""Tasks in one tar archive, ``TASK/...`` each. The archive is gone through once for names, by its headers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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
                for member in members(file):
                    parts = split_path(member.name)
                    name = parts[0].decode("utf-8", "surrogateescape") if parts else ""
                    if not is_task_name(name) or (len(parts) == 1 and member.kind is not Kind.FOLDER):
                        continue
                    folders.add(name)
                    if parts[1:] == [TASK_TOML]:
                        tasks.add(name)
                    self._add(name, member.start, member.end)
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
