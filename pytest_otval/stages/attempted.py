"""The attempts of models that a run has made at a task so far, read from its ledger while others write there."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_otval.core import node_id
from pytest_otval.evidence import EvidenceError, files
from pytest_otval.ledger import SCHEMA
from pytest_otval.llm.atif import NAME
from pytest_otval.stages.spec import TEACHER

_MARKS = (f'"{TEACHER.mark}"'.encode(), b'"result"')
_ENDED = ("pass", "fail")
"""Verdicts of attempts that were made."""

Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Place:
    time: str
    file: Path
    offset: int
    digest: str
    """Of the task."""


class AttemptLines:
    """Finds the lines of attempts in a run folder. Each part of a ledger is read once; places are kept."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self._read: dict[Path, int] = {}
        """How far each file was read."""
        self._places: dict[str, dict[str, _Place]] = defaultdict(dict)
        """The latest attempt of each item, by its task's part of the id."""

    def of(self, dataset: str, task: str, task_digest: str) -> list[Line]:
        """Return the attempts at a task of this content that ended, by id."""
        for path in sorted((self.run / "ledger").glob("*.jsonl")):
            self._read[path] = self._go_on(path, self._read.get(path, 0))
        places = self._places.get(node_id(dataset, task, ""), {})
        return [_line(place) for _, place in sorted(places.items()) if place.digest == task_digest]

    def _go_on(self, path: Path, at: int) -> int:
        """Read what is new in a file; its last line may still be half."""
        with path.open("rb") as file:
            file.seek(at)
            for raw in file:
                if not raw.endswith(b"\n"):
                    break
                if all(mark in raw for mark in _MARKS):
                    self._note(raw, path, at)
                at += len(raw)
        return at

    def _note(self, raw: bytes, path: Path, at: int) -> None:
        try:
            line = json.loads(raw)
            known = line["v"] == SCHEMA and line["kind"] == "result" and line["stage"] == TEACHER.mark
            texts = (line["time"], line["task_digest"], line["class"])
            if not known or line["verdict"] not in _ENDED or not all(isinstance(one, str) for one in texts):
                return
            file, mark, _ = line["id"].rpartition("::")
            place = _Place(line["time"], path, at, line["task_digest"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return
        of_task = self._places[file + mark]
        if line["id"] not in of_task or of_task[line["id"]].time <= place.time:
            of_task[line["id"]] = place


def _line(place: _Place) -> Line:
    with place.file.open("rb") as file:
        file.seek(place.offset)
        line: Line = json.loads(file.readline())
        return line


def digest_of(lines: Iterable[Line]) -> str:
    """Return a sha256 over lines, as 16 hex digits."""
    return hashlib.sha256(json.dumps(list(lines), sort_keys=True).encode()).hexdigest()[:16]


def trajectory_of(run: Path, place: str) -> Mapping[str, Any]:
    """Return the ATIF trajectory in an attempt's evidence; of a task with several steps all of theirs, one after the
    other, with numbers of their own.

    Whatever is in it: a run may be somebody else's. Raises EvidenceError, OSError.
    """
    parts = [_parsed(name, data) for name, data in files(run, place) if _is_trajectory(name)] if place else []
    if not parts:
        raise EvidenceError("its evidence holds no trajectory")
    if len(parts) == 1:
        return parts[0]
    steps = [step for part in parts for step in _steps(part)]
    return {**parts[0], "steps": [{**step, "step_id": number} for number, step in enumerate(steps, start=1)]}


def _is_trajectory(name: str) -> bool:
    """Whether we wrote a file of evidence as a trajectory: deeper ones, as below artifacts/, are the attempt's own."""
    parts = Path(name).parts
    within = parts[2:] if parts[0] == "steps" else parts
    return within == ("agent", NAME)


def _steps(trajectory: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    steps = trajectory.get("steps")
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []


def _parsed(name: str, data: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{name!r} is no trajectory: {type(error).__name__}") from None
    if not isinstance(found, dict):
        raise EvidenceError(f"{name!r} is no trajectory: it is no object")
    return found
