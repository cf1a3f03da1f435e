"""What patches did to the answers about tasks: each compared with the one before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pytest_otval.core import Severity
from pytest_otval.report.results import Row, read_results, stage_order
from pytest_otval.stages.repeat import interval

Became = Literal["fixed", "improved", "regressed", "flaky", "still broken", "unchanged", "no answer"]
COLUMNS: tuple[Became, ...] = ("fixed", "improved", "regressed", "flaky", "still broken", "unchanged", "no answer")
Patches = tuple[str, ...]
"""Ids of patches, in the order in which they were applied."""
Key = tuple[str, str]
"""Task and stage."""
NOOP, ADVERSARY = "noop", "adversary"
PAID, NOTHING = "paid ", "for doing nothing"
"""Faults of a verifier: what it pays for."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one run says of one item."""

    row: Row
    faults: frozenset[str]
    """Attacks that are paid, nothing that is paid, and findings that are errors, without their lines, which move."""

    @property
    def looked(self) -> bool:
        """Whether faults would have been seen, if there were any."""
        row = self.row
        tried = any(cell != "not-applied" for _, cell in row.attacks) or (row.stage, row.verdict) == (NOOP, "fail")
        return row.verdict in ("pass", "n/a") or tried or bool(self.faults)

    @property
    def works(self) -> int:
        """How often it gives the expected answer: 0 never, 1 sometimes, 2 always."""
        return 2 if self.row.verdict == "pass" else int(self.row.flaky)

    @property
    def rate(self) -> tuple[float, float]:
        """The 95 % interval of how often it gives the expected answer."""
        row = self.row
        if row.low is not None and row.high is not None:
            return row.low, row.high
        return interval(row.verdict == "pass", 1)

    def __str__(self) -> str:
        said = self.row.verdict if self.row.verdict == "pass" else f"{self.row.verdict} {self.row.reason}"
        return f"{said} {self.row.attempts[0]}/{self.row.attempts[1]}" if self.row.attempts else said


@dataclass(frozen=True, slots=True)
class Effect:
    """What became of one item."""

    task: str
    stage: str
    patches: Patches
    became: Became
    before: Answer | None
    """None: it was not asked."""
    after: Answer

    @property
    def key(self) -> Key:
        """What it is about."""
        return self.task, self.stage

    @property
    def new(self) -> list[str]:
        """Faults that were not there before."""
        return sorted(self.after.faults - self._old)

    @property
    def gone(self) -> list[str]:
        """Faults that are no longer there."""
        return sorted(self._old - self.after.faults)

    @property
    def _old(self) -> frozenset[str]:
        return self.before.faults if self.before else frozenset()


def read_answers(run: Path) -> dict[Key, Answer]:
    """Return the answers of a run about tasks. Raises OtvalUsageError where it has none."""
    results = read_results(run)
    return {
        (row.task, row.stage): Answer(row, _faults(line))
        for row, line in zip(results.rows, results.lines(), strict=True)
        if row.task
    }


def _faults(line: Mapping[str, Any]) -> frozenset[str]:
    paid = [name for name, cell in line.get("attacks", {}).items() if cell == "paid"]
    if line["stage"] == NOOP and line["class"] == "wrong-reward":
        paid.append(NOTHING)
    found = (one for one in line.get("checks", ()) if one["severity"] == Severity.ERROR and not one.get("allowed"))
    return frozenset((*(f"{PAID}{name}" for name in paid), *(f"{one['check']} {one['path']}" for one in found)))


def effects(before: Mapping[Key, Answer], after: Mapping[Key, Answer], patches: Mapping[str, Patches]) -> list[Effect]:
    """Return what became of each item of the tasks that patches change, by task and stage."""
    found = [
        Effect(task, stage, patches[task], became(before.get((task, stage)), answer), before.get((task, stage)), answer)
        for (task, stage), answer in after.items()
        if task in patches
    ]
    return sorted(found, key=lambda one: (one.task, stage_order(one.stage)))


def became(before: Answer | None, after: Answer) -> Became:
    """Compare two answers about one item."""
    if before is None or "error" in (before.row.verdict, after.row.verdict):
        return "no answer"
    verdicts = {before.row.verdict, after.row.verdict}
    if (before.row.flaky or after.row.flaky) and verdicts <= {"pass", "fail"}:
        return _by_rates(before.rate, after.rate)
    if after.faults - before.faults and before.looked:
        return "regressed"
    return _by_verdicts(before, after)


def _by_rates(before: tuple[float, float], after: tuple[float, float]) -> Became:
    """Attempts differ: another rate is one only where the intervals have nothing in common."""
    if after[1] < before[0]:
        return "regressed"
    return "improved" if after[0] > before[1] else "flaky"


def _by_verdicts(before: Answer, after: Answer) -> Became:
    if after.works != before.works:
        return "regressed" if after.works < before.works else "fixed" if after.row.verdict == "pass" else "improved"
    if before.faults - after.faults:
        return "improved"
    # A question that did not apply, and still does not, is no fault.
    same_na = before.row.verdict == after.row.verdict == "n/a"
    return "unchanged" if after.row.verdict == "pass" or same_na else "still broken"


def confirmed(one: Effect, before: Answer | None, after: Answer | None) -> Effect:
    """Return what became of an item that seemed to have regressed, by answers to the same question asked again.

    What holds in one of both times only is no regression. Nor is a fault that was there once before, or once not
    there since, as of attacks, whose stage has no attempts.
    """
    if one.before is None or before is None or after is None:
        return replace(one, became="no answer")
    before = Answer(before.row, before.faults | one.before.faults)
    after = Answer(after.row, after.faults & one.after.faults)
    now = became(before, after)
    return replace(one, became=now if now in ("regressed", "no answer") else "flaky", before=before, after=after)


def regressed(found: Iterable[Effect]) -> list[Effect]:
    """Return the items that are worse than before."""
    return [one for one in found if one.became == "regressed"]
