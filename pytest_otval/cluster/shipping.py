"""From a job's own disk to shared storage: one ledger file and one archive of evidence for each attempt of a shard.

The processes of a job write their ledgers and evidence to a run folder on the node, as every run does. A shipper
appends what is new of them, all writers in one file: shared storage has few files and sees a few large writes, and what
a dying node takes along is what it did in the last second. Evidence is durable before the line that names it.

Beside what the processes wrote, the file has lines of kind ``shard`` and ``started`` (see ``journal``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from pytest_otval.evidence import Archive, EvidenceError
from pytest_otval.evidence.names import PLACE
from pytest_otval.ledger import SCHEMA

MAX_BATCH_BYTES = 8 << 20
"""What is read of one writer at a time; a longer line is not ours."""


class Shipper:
    """Carries the lines of a node-local run folder into a run folder on shared storage."""

    def __init__(self, local: Path, run: Path, writer: str) -> None:
        """``writer`` names the attempt; a second one of the name, as of a job id used again, gets a number."""
        self._local = local
        self._archive = Archive(run, writer)
        self._target = _Appended(run / "ledger", writer)
        self._sources: dict[Path, _Source] = {}
        self._places: dict[str, str] = {}
        """New places by old ones: the lines of an item's trials have that of the item."""
        self._notes: list[bytes] = []

    def note(self, facts: Mapping[str, Any]) -> None:
        """Take a line of our own, for the next time something is shipped."""
        self._notes.append(_as_line({"v": SCHEMA, **facts}))

    def ship(self) -> int:
        """Ship what is whole by now, and return how many lines that were.

        Raises OSError, for one where shared storage is full: what was shipped stays whole, and the next call goes on.
        """
        shipped = self._append(self._notes) if self._notes else 0
        self._notes = []
        for path in sorted((self._local / "ledger").glob("*.jsonl")):
            source = self._sources.setdefault(path, _Source(path))
            while lines := source.lines():
                shipped += self._append([self._moved(line) for line in lines])
                source.taken()
        return shipped

    def close(self) -> None:
        """Close the files."""
        self._archive.close()
        self._target.close()

    def _append(self, lines: list[bytes]) -> int:
        self._archive.sync()
        self._target.write(b"".join(lines))
        return len(lines)

    def _moved(self, line: dict[str, Any]) -> bytes:
        place = line.get("evidence")
        if isinstance(place, str) and PLACE.fullmatch(place):
            if place not in self._places:
                try:
                    self._places[place] = self._archive.take(self._local, place)
                except EvidenceError as error:
                    # The answer stands without its logs.
                    self._places[place] = f"not kept: {error}"
            line = {**line, "evidence": self._places[place]}
        return _as_line(line)


class _Source:
    """A ledger file that somebody else appends to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = self._next = 0

    def lines(self) -> list[dict[str, Any]]:
        """Return lines that are whole and were not taken yet; what is no line of a ledger is passed over."""
        while True:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(MAX_BATCH_BYTES)
            end = data.rfind(b"\n") + 1
            if not end and len(data) < MAX_BATCH_BYTES:
                return []
            self._next = self._offset + (end or len(data))
            if lines := [line for raw in data[:end].splitlines() if (line := _parsed(raw)) is not None]:
                return lines
            self.taken()

    def taken(self) -> None:
        """Go on behind what ``lines`` returned."""
        self._offset = self._next


class _Appended:
    """A file on shared storage with one writer; a write that fails leaves it as it was."""

    def __init__(self, folder: Path, writer: str) -> None:
        self._folder = folder
        self._writer = writer
        self._handle: int | None = None
        self._end = 0

    def write(self, data: bytes) -> None:
        """Append, and return once it is on the disk. Raises OSError."""
        if self._handle is None:
            self._handle = self._opened()
        try:
            view, end = memoryview(data), self._end
            while view:
                written = os.pwrite(self._handle, view, end)
                view, end = view[written:], end + written
            os.fsync(self._handle)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._handle, self._end)
            raise
        self._end = end

    def _opened(self) -> int:
        self._folder.mkdir(parents=True, exist_ok=True)
        for number in count(1):
            path = self._folder / f"{self._writer}{f'-{number}' if number > 1 else ''}.jsonl"
            with suppress(FileExistsError):
                return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        raise AssertionError

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _parsed(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    return line if isinstance(line, dict) and line.get("v") == SCHEMA else None


def _as_line(values: Mapping[str, Any]) -> bytes:
    return (json.dumps(values, ensure_ascii=True, allow_nan=False) + "\n").encode()
