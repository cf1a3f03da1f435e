"""What has to be asked again after a change, and how long that takes by what earlier runs took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from pytest_otval.contract.compare import Difference, Kind
from pytest_otval.contract.model import Contract, Item
from pytest_otval.core import stage_of
from pytest_otval.history import Record, read_history
from pytest_otval.stages.spec import EVERY_STAGE, JUDGE_MARKS

CONTAINERS = frozenset(stage.mark for stage in EVERY_STAGE if stage.containers)
_CONCERNS: Mapping[Kind, frozenset[str]] = {
    "images": CONTAINERS,
    "runtimes": CONTAINERS,
    "checks": frozenset(("static",)),
    "attacks": frozenset(("adversary",)),
    "rubrics": JUDGE_MARKS,
    "expected": frozenset(),
    "versions": frozenset(),
}
"""Stages that a class of differences concerns, where these are not all."""


def to_ask_again(contract: Contract, found: Iterable[Difference]) -> list[Item]:
    """Return the items of a contract whose answers the differences to an earlier one may change."""
    # By dataset and task, either of which may be empty: stages, None for all.
    changed: dict[tuple[str, str], list[frozenset[str] | None]] = {}
    for one in found:
        changed.setdefault((one.dataset, one.task), []).append(_CONCERNS.get(one.kind))

    def concerned(item: Item) -> bool:
        keys = {(item.dataset, item.task), (item.dataset, ""), ("", "")}
        return any(stages is None or stage_of(item.stage) in stages for key in keys for stages in changed.get(key, ()))

    return [item for item in contract.items() if concerned(item)]


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long some items take."""

    items: int
    core_seconds: float
    """Wall time of each, one after the other."""
    guessed: int
    """Items of which nothing is recorded; each counts as the mean of its stage, or of all."""

    def __str__(self) -> str:
        if not self.items:
            return "nothing has to run again"
        if self.guessed == self.items:
            return f"{self.items} items have to run again; how long that takes is not known"
        guessed = f", {self.guessed} of them guessed" if self.guessed else ""
        return f"{self.items} items have to run again: about {_hours(self.core_seconds)} of one core{guessed}"

    def node_hours(self, cores: int) -> float:
        """Return the hours of a node of that many cores."""
        return self.core_seconds / 3600 / cores


def _hours(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )


def estimate(items: Iterable[Item], history: Path) -> Estimate:
    """Return how long items take, by the records in a folder of ``history``."""
    records: dict[str, dict[str, Record]] = {}
    known: dict[str, list[float]] = {}
    unknown: list[str] = []
    count = 0
    for item in items:
        count += 1
        if item.dataset not in records:
            records[item.dataset] = read_history(history, item.dataset)
        stage = stage_of(item.stage)
        seconds = records[item.dataset].get(item.task, Record()).seconds.get(stage)
        if seconds is None:
            unknown.append(stage)
        else:
            known.setdefault(stage, []).append(seconds)
    every = [seconds for one in known.values() for seconds in one]
    usual = fmean(every) if every else 0.0
    guess = sum(fmean(known[stage]) if stage in known else usual for stage in unknown)
    return Estimate(count, sum(every) + guess, len(unknown))
