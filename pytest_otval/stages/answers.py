"""Answers that were given before to the very same question: in the run that goes on, and in any earlier one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_otval.ledger import lines_of

Line = Mapping[str, Any]

NOT_REUSED = frozenset(("env-missing",))
"""Classes that tell of the host as much as of the task."""


class EarlierAnswers:
    """Finds the result lines of items in run folders. Each ledger is read once, when first asked; places are kept."""

    def __init__(self, runs: Iterable[Path], settings_digest: str) -> None:
        """``settings_digest`` is that of this run: answers under other settings do not count, nor do errors."""
        self._runs = tuple(runs)
        self._settings_digest = settings_digest
        self._digests: set[int] = set()
        """Hashes of items with the digests of their tasks, once the ledgers are read."""

    def has_some(self, id: str, task_digest: str) -> bool:
        """Whether an item has an answer over the same files; the rest of the question may be another."""
        return id in self._index and hash((id, task_digest)) in self._digests

    def of(self, id: str, task_digest: str, inputs: str, attempts: int = 1) -> tuple[Path, Line] | None:
        """Return the run and the line of an item's latest answer over the same task and inputs; None: there is none.

        An answer over another number of attempts is one to another question.
        """
        found = [
            (run, line)
            for run, line in self._lines(id)
            if (line["task_digest"], line.get("inputs", ""), _attempts(line)) == (task_digest, inputs, attempts)
        ]
        return max(found, key=lambda pair: str(pair[1]["time"]), default=None)

    def _lines(self, id: str) -> Iterator[tuple[Path, Line]]:
        for number, offset in self._index.get(id, ()):
            run, path = self._files[number]
            with path.open("rb") as file:
                file.seek(offset)
                yield run, next(line for _, line in lines_of(path, "result", file))

    @cached_property
    def _files(self) -> list[tuple[Path, Path]]:
        return [(run, path) for run in self._runs for path in sorted((run / "ledger").glob("*.jsonl"))]

    @cached_property
    def _index(self) -> Mapping[str, list[tuple[int, int]]]:
        index: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, (_, path) in enumerate(self._files):
            for offset, line in lines_of(path, "result"):
                if line["settings_digest"] == self._settings_digest and line["verdict"] != "error":
                    index[line["id"]].append((number, offset))
                    self._digests.add(hash((line["id"], line["task_digest"])))
        return index


def _attempts(line: Line) -> int:
    found = line.get("attempts")
    return int(found["count"]) if found else 1


def may_be_reused(line: Line, inputs: str) -> bool:
    """Whether an answer of another run stands for this one: that on n/a hangs on the machine, and is soon given."""
    return bool(inputs) and line["verdict"] != "n/a" and line["class"] not in NOT_REUSED
