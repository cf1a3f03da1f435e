"""How far a judge is to be believed, by model and rubric: measured, written down, and found again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from pytest_otval.judge.model import NOT_MEASURED, Rubric
from pytest_otval.judge.records import append, read
from pytest_otval.judge.tally import Count, Share, Tally, total

NAME = "calibrations.jsonl"
HEAD = ("criterion", "precision", "recall", "kappa", "assured", "placed", "labels")
"""``assured``: see ``Tally.assured``, to which the floor applies. ``placed``: of the faults that were found
those that are quoted from where they are."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """One model measured by one rubric."""

    model: str
    """As the endpoint knows it."""
    endpoint: str
    """Its address: who answered there is not known."""
    kind: str
    rubric: str
    """Its digest."""
    votes: Count
    floor: Annotated[float, Field(ge=0, le=1)]
    untouched: Count
    """Reviews of what was not changed."""
    alarmed: Count
    """Of them those with a finding of a criterion that blocks."""
    seeded: Count
    unreadable: Count
    """Reviews that came to nothing, and are in no count."""
    time: str
    """UTC, ISO 8601."""
    tallies: tuple[Tally, ...]

    @property
    def advisory(self) -> frozenset[str]:
        """Criteria below the floor."""
        return frozenset(one.criterion for one in self.tallies if one.is_below(self.floor))

    def told(self, criterion: str) -> str:
        """Return in words what is known of a criterion, and by whom it was measured."""
        tally = next((one for one in self.tallies if one.criterion == criterion), None)
        if tally is None or not tally.is_measured:
            return NOT_MEASURED
        below = f"; below {self.floor:g}, so it decides nothing" if criterion in self.advisory else ""
        words = f"precision {tally.precision}, recall {tally.recall}{below}"
        return f"{words} ({self.model} at {self.endpoint}, {self.time[:10]})"

    def as_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """Return what ``as_dict`` gave, also after JSON. Raises ValueError for anything else."""
        return _ADAPTER.validate_python(values)


_ADAPTER = TypeAdapter(Calibration)


def add_calibration(folder: Path, calibration: Calibration) -> None:
    """Write a calibration down; it replaces earlier ones of its model and rubric. Raises OSError."""
    append(folder / NAME, calibration.as_dict())


def latest(folder: Path, model: str, rubric: str) -> Calibration | None:
    """Return the last calibration of a model by a rubric of this digest; None where there is none. Raises OSError."""
    found = None
    for line in read(folder / NAME):
        if (line.get("model"), line.get("rubric")) == (model, rubric):
            found = _calibration(line) or found
    return found


def measured(calibration: Calibration | None, criterion: str) -> str:
    """Return in words what is known of a criterion."""
    return NOT_MEASURED if calibration is None else calibration.told(criterion)


def table_lines(calibration: Calibration, rubric: Rubric) -> list[str]:
    """Return the counts as lines of text, with what they were measured by."""
    rows = [HEAD, *(_row(one) for one in (*calibration.tallies, total(calibration.tallies)))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    below = calibration.advisory & {one.id for one in rubric.criteria if one.blocking}
    unseeded = [one.criterion for one in calibration.tallies if not one.is_measured]
    tried = [one.id for one in rubric.criteria if one.execution]
    who = f"{calibration.model} at {calibration.endpoint}"
    return [
        f"measured by {who}, up to {calibration.votes} votes, rubric {calibration.rubric}",
        f"reviews: {calibration.untouched} of what is sound, {calibration.seeded} of one fault each,"
        f" {calibration.unreadable} unreadable and in no count",
        f"sound, with a finding that blocks: {Share(calibration.alarmed, calibration.untouched)}",
        *table,
        f"{NOT_MEASURED}: {', '.join(unseeded) or 'none'}",
        f"decided by a trial in runs, and by the judge alone here: {', '.join(tried) or 'none'}",
        f"only advisory with this model and rubric, below {calibration.floor:g}: {', '.join(sorted(below)) or 'none'}",
    ]


def _row(tally: Tally) -> Sequence[str]:
    kappa = "-" if tally.kappa is None else f"{tally.kappa:.2f}"
    placed = f"{tally.placed}/{tally.found}" if tally.found else "-"
    assured = "-" if tally.assured is None else f"{tally.assured:.2f}"
    return tally.criterion, str(tally.precision), str(tally.recall), kappa, assured, placed, str(tally.labelled)


def _calibration(line: Mapping[str, Any]) -> Calibration | None:
    try:
        return Calibration.from_dict(line)
    except ValueError:
        return None
