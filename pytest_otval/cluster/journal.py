"""What is known of a submitted run, read from the ledger files of its shards.

An attempt of a shard is one file, ``ledger/shard-<I>.<JOBID>.<RESTART>.jsonl``. Beside results and trials it has

- ``{"kind": "shard", "event": "began", "shard", "job", "restart", "array", "node", "items", "time"}``,
- ``{"kind": "started", "id"}`` for each item as it starts, and
- ``{"kind": "shard", "event": "ended", "why", "fault", "time"}``.

An attempt that has no end was killed, by what it ran or together with its node: Slurm's own ends, a cancelled or
preempted job and a time limit, begin with a signal, and the job still writes that it ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pytest_otval.core import Verdict
from pytest_otval.ledger import SCHEMA

Fault = Literal["", "slurm", "node", "item", "server"]
"""Whose fault an end is: nobody's, Slurm's (it may begin again anywhere), the node's, that of an item it ran, or of a
server of a model in the job."""

WATCHER = "watch"
"""The ledger's writer that gives up items, before a run went on for the first time."""
_WATCHERS = re.compile(rf"{WATCHER}(?:-(?P<since>\d+))?")

ATTEMPT = re.compile(r"shard-(?P<shard>\d+)\.(?P<job>\d+(?:_\d+)?)\.(?P<restart>\d+)(?:-\d+)?")


def watcher_name(since: int) -> str:
    """Return the ledger's writer that gives up items, in a run that last went on with the array ``since``."""
    return f"{WATCHER}-{since}" if since else WATCHER


def attempt_name(shard: int, job: str, restart: int) -> str:
    """Return the name of an attempt's files; ``job`` is as squeue has it, ``123_4``."""
    return f"shard-{shard}.{job}.{restart}"


@dataclass(slots=True)
class Attempt:
    """One life of a shard's job."""

    shard: int
    job: str
    restart: int
    node: str = ""
    array: int = -1
    """Which of the run's arrays it belongs to; -1 until its beginning was read."""
    started: set[str] = field(default_factory=set)
    """Items that it began; those without an answer were running when it ended."""
    answers: int = 0
    ended: bool = False
    why: str = ""
    fault: Fault = ""

    @property
    def place(self) -> tuple[int, int]:
        """The number of its array, and its own in it."""
        return self.array, int(self.job.partition("_")[2] or 0)


class Journal:
    """Follows the ledger of a run: each ``read`` gives the result lines that came since."""

    def __init__(self, run: Path, since: int = 0, names: Sequence[str] = ("*.jsonl",)) -> None:
        """``since``: the array with which the run last went on; earlier errors are no answers.

        ``names``: patterns of the ledger's files that are read.
        """
        self._run = run
        self._since = since
        self._names = names
        self._offsets: dict[Path, int] = {}
        self._attempts: dict[str, Attempt] = {}
        self.done: set[str] = set()
        """Ids of items that have an answer, of whatever attempt."""
        self.repeated = 0
        """Result lines of items that had an answer already; the first one counts."""

    @property
    def attempts(self) -> list[Attempt]:
        """The attempts that wrote down their beginning."""
        return [attempt for attempt in self._attempts.values() if attempt.array >= 0]

    @property
    def files(self) -> int:
        """How many files there were lines in."""
        return len(self._offsets)

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the result lines that are new, the first of each item. Half lines wait."""
        for path in sorted(path for name in self._names for path in (self._run / "ledger").glob(name)):
            found, watcher = ATTEMPT.fullmatch(path.stem), _WATCHERS.fullmatch(path.stem)
            attempt, array = None, int(watcher["since"] or 0) if watcher else 0
            if found is not None:
                fresh = Attempt(int(found["shard"]), found["job"], int(found["restart"]))
                attempt = self._attempts.setdefault(path.stem, fresh)
            for line in self._new_lines(path):
                if self._take(line, attempt, array):
                    yield line

    def _new_lines(self, path: Path) -> Iterator[dict[str, Any]]:
        with path.open("rb") as file:
            file.seek(self._offsets.get(path, 0))
            for raw in file:
                if not raw.endswith(b"\n"):
                    return
                self._offsets[path] = self._offsets.get(path, 0) + len(raw)
                try:
                    line = json.loads(raw)
                except ValueError:
                    continue
                if isinstance(line, dict) and line.get("v") == SCHEMA:
                    yield line

    def _take(self, line: dict[str, Any], attempt: Attempt | None, array: int) -> bool:
        """Note what a line tells; whether it is an item's first answer.

        ``array``: in whose time it was written, where that is no attempt's.
        """
        kind, id = line.get("kind"), line.get("id")
        if attempt is not None:
            _note(attempt, kind, line)
            array = attempt.array
        if kind != "result" or not isinstance(id, str):
            return False
        if line.get("verdict") == Verdict.ERROR and max(array, 0) < self._since:
            return False
        self.repeated += id in self.done
        new = id not in self.done
        self.done.add(id)
        return new


def _note(attempt: Attempt, kind: Any, line: dict[str, Any]) -> None:
    if kind == "started":
        attempt.started.add(str(line.get("id")))
    elif kind == "result":
        attempt.answers += 1
    elif kind == "shard" and line.get("event") == "began":
        attempt.node, attempt.array = str(line.get("node", "")), int(line.get("array", -1))
    elif kind == "shard" and line.get("event") == "ended":
        fault = line.get("fault", "")
        attempt.ended, attempt.why = True, str(line.get("why", ""))
        attempt.fault = fault if fault in ("slurm", "node", "item", "server") else ""


def answered(run: Path, shard: int, since: int = 0) -> set[str]:
    """Return the ids of a shard's items that have an answer: only its own files, and those of who watches, tell."""
    journal = Journal(run, since, (f"shard-{shard}.*.jsonl", f"{WATCHER}*.jsonl"))
    return {str(line["id"]) for line in journal.read()}
