"""What all packed forms have in common: names are checked and kept, and one task is unpacked by its name."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.task.packed.unpack import DamagedError, Entry, Kind, unpack

TASK_TOML = b"task.toml"


class PackedSource(ABC):
    """A ``TaskSource`` over packed files, which must not change while it is used."""

    def __init__(self, dataset: Path) -> None:
        self.path = dataset

    def names(self) -> tuple[list[str], list[str]]:
        """Return the names of tasks, and of what is none. Raises OtvalUsageError."""
        tasks, others = self._index
        return sorted(tasks), sorted(others)

    def has(self, name: str) -> bool:
        """Whether there is a task of this name. Raises OtvalUsageError."""
        return name in self._index[0]

    @abstractmethod
    def anchor(self, name: str) -> Path:
        """Return the file that the task is packed into."""

    def folder(self, name: str, scratch: Path) -> Path:
        """Unpack a task to ``scratch/<dataset>/<name>``. Raises Conclusion as ``TaskSource`` says."""
        if not self.has(name) or not is_task_name(name):
            raise Conclusion("bad-task", f"{self.path.name} has no task {name!r} that could be unpacked")
        folder = scratch / self.path.name / name
        unpack(self._watched(name), folder)
        return folder

    def peek(self, name: str, paths: Collection[str], limit: int) -> dict[str, bytes]:
        """Return files by their paths; only what lies before and among them is read. Raises Conclusion."""
        wanted = {os.fsencode(path): path for path in paths}
        found: dict[str, bytes] = {}
        try:
            for entry in self._watched(name):
                path = wanted.get(entry.path.removeprefix(b"./"))
                if path is None or entry.kind is not Kind.FILE:
                    continue
                content = b""
                for piece in entry.content():
                    content += piece
                    if len(content) > limit:
                        break
                else:
                    found[path] = content
                if len(found) == len(wanted):
                    break
        except DamagedError as error:
            raise Conclusion("bad-task", f"the packed task cannot be read: {error}") from None
        return found

    def _watched(self, name: str) -> Iterator[Entry]:
        """Yield a task's entries, and tell errors of reading them from those of writing."""
        with self._as_lost(name):
            for entry in self._entries(name):
                yield replace(entry, content=partial(self._content, name, entry))

    def _content(self, name: str, entry: Entry) -> Iterator[bytes]:
        with self._as_lost(name):
            yield from entry.content()

    @contextmanager
    def _as_lost(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Conclusion("dataset-unreadable", f"{self.anchor(name)}: {error.strerror or error}") from None

    @cached_property
    def _index(self) -> tuple[set[str], set[str]]:
        return self._read_names()

    @abstractmethod
    def _read_names(self) -> tuple[set[str], set[str]]:
        """Read the names of tasks, and of what is none. Raises OtvalUsageError."""

    @abstractmethod
    def _entries(self, name: str) -> Iterator[Entry]:
        """Yield what a task consists of. Raises DamagedError, Conclusion."""


def is_task_name(name: str) -> bool:
    """Whether a folder of this name would be looked at as a task: hidden ones are not, nor is what leads elsewhere."""
    return bool(name) and not name.startswith(".") and "/" not in name and "\0" not in name


def unusable(file: Path, error: DamagedError | OSError) -> OtvalUsageError:
    """Return the error for a packed file that cannot be used as a whole."""
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return OtvalUsageError(f"{os.path.relpath(file)} cannot be read: {why}; get or pack the dataset anew")
