"""Attempts that earlier runs into the same run folder left in its ledger."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_otval.ledger import lines_of

_Place = tuple[int, int]
"""Number of a ledger file, and where a line starts in it."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """What is known of an item's attempts before this run."""

    attempts: Mapping[int, Mapping[str, Any]]
    """The last trial line of each, by the attempt's number."""
    next_number: int = 0
    """For the key of the next trial: none of the item has it, of whatever task and settings."""


@dataclass(frozen=True, slots=True)
class _Index:
    """By item."""

    places: dict[str, list[_Place]] = field(default_factory=lambda: defaultdict(list))
    next_number: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, trial: str, place: _Place | None) -> None:
        item, _, key = trial.rpartition("#")
        number = key.rpartition("/")[2]
        self.next_number[item] = max(self.next_number[item], int(number) + 1 if number.isdecimal() else 0)
        if place is not None:
            self.places[item].append(place)


class EarlierAttempts:
    """Finds the trial lines of an item. The ledger is read once, when first asked; only places of lines are kept."""

    def __init__(self, run: Path, settings_digest: str) -> None:
        """``settings_digest`` is that of this run: attempts under other settings do not count."""
        self._run = run
        self._settings_digest = settings_digest

    def of(self, id: str, task_digest: str, inputs: str) -> Earlier:
        """Return the attempts of an item at this very task, over the same images, runtimes and settings (``inputs``).

        Those that ended in an error of ours or the machine's are not among them.
        """
        lines = [self._line(place) for place in self._index.places.get(id, ())]
        lines = [line for line in lines if (line["task_digest"], line.get("inputs", "")) == (task_digest, inputs)]
        latest = {line["attempt"]: line for line in sorted(lines, key=lambda line: str(line["time"]))}
        return Earlier(latest, self._index.next_number.get(id, 0))

    @cached_property
    def _files(self) -> list[Path]:
        return sorted((self._run / "ledger").glob("*.jsonl"))

    @cached_property
    def _index(self) -> _Index:
        index = _Index()
        for number, path in enumerate(self._files):
            for offset, line in lines_of(path, "trial"):
                counts = line["settings_digest"] == self._settings_digest and line["verdict"] != "error"
                index.add(line["id"], (number, offset) if counts else None)
        return index

    def _line(self, place: _Place) -> dict[str, Any]:
        with self._files[place[0]].open("rb") as file:
            file.seek(place[1])
            line: dict[str, Any] = json.loads(file.readline())
            return line
