"""Parts of a dataset: each a Parquet file of some hundred tasks, named by what went into it.

Where a part ends is told by names alone. So a task that is added, changed or removed makes one part anew, or two: the
next boundary is where it was.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pytest_otval.core import NAME, Conclusion, printable
from pytest_otval.sources.adapters.base import Refused, refused
from pytest_otval.sources.files import SourceError

MIN_TASKS, MAX_TASKS = 384, 2048
MEAN_REST = 384
"""After the fewest tasks a part goes on for so many in the mean: 10,000 tasks are about 13 files."""
CHUNK_TASKS = 32
"""What a process makes at once."""


class Raw(Protocol):
    """A task as its source has it. It is sent to another process, so it is small or holds nothing but its files."""

    @property
    def name(self) -> str:
        """Its name in the dataset."""

    @property
    def record(self) -> str:
        """What the source calls it."""

    def digest(self, scratch: Path) -> str:
        """Return its digest; ``scratch`` may be used for it. Raises SourceError, Conclusion ``bad-task``."""

    def write(self, folder: Path) -> None:
        """Write its files into a folder, which is made here. Raises SourceError, Conclusion ``bad-task``."""


Tasks = Iterable[Raw | Refused]


def ends_part(name: str, tasks: int) -> bool:
    """Whether a part of so many tasks ends with the task of this name."""
    if tasks < MIN_TASKS:
        return False
    return tasks >= MAX_TASKS or int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) % MEAN_REST == 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some tasks that follow each other, written one after the other to a file on scratch."""

    file: Path
    offset: int
    count: int


@dataclass(frozen=True, slots=True)
class Part:
    """Tasks as their source has them, on scratch."""

    key: str
    """A digest of what goes into it."""
    file: Path
    chunks: tuple[Chunk, ...]


class Spool:
    """Writes the tasks of a source to scratch, a part at a time, and notes what gives no task."""

    def __init__(self, recipe: str, scratch: Path) -> None:
        self.refused: list[Refused] = []
        self._names: set[str] = set()
        self._recipe = recipe
        self._scratch = scratch

    def parts(self, tasks: Tasks) -> Iterator[Part]:
        """Yield parts. Raises SourceError where the source cannot be read, or has two tasks of one name."""
        stream = self._good(tasks)
        for number, first in enumerate(stream):
            yield self._part(self._scratch / f"{number}.tasks", first, stream)

    def _part(self, file: Path, first: tuple[Raw, str], stream: Iterator[tuple[Raw, str]]) -> Part:
        went_in: list[tuple[str, str]] = []
        starts: list[int] = []
        with file.open("wb") as spool:
            for task, digest in itertools.chain([first], stream):
                if len(went_in) % CHUNK_TASKS == 0:
                    starts.append(spool.tell())
                pickle.dump((task, digest), spool, pickle.HIGHEST_PROTOCOL)
                went_in.append((task.name, digest))
                if ends_part(task.name, len(went_in)):
                    break
        counts = [min(CHUNK_TASKS, len(went_in) - place) for place in range(0, len(went_in), CHUNK_TASKS)]
        chunks = tuple(Chunk(file, start, count) for start, count in zip(starts, counts, strict=True))
        key = hashlib.sha256(json.dumps([self._recipe, went_in]).encode()).hexdigest()[:16]
        return Part(key, file, chunks)

    def _good(self, tasks: Tasks) -> Iterator[tuple[Raw, str]]:
        for task in tasks:
            if isinstance(task, Refused):
                self.refused.append(task)
                continue
            if task.name in self._names:
                raise SourceError(f"two tasks of the source are called {printable(task.name)}")
            self._names.add(task.name)
            if not NAME.fullmatch(task.name):
                self.refused.append(refused(task.name, "bad-name", "its name cannot stand in a node id"))
                continue
            try:
                yield task, task.digest(self._scratch)
            except (SourceError, Conclusion) as error:
                self.refused.append(refused(task.name, "unreadable", str(error)))
