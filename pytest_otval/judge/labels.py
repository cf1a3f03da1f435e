"""What people say of findings: whether a judge was right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import StrictBool, TypeAdapter

from pytest_otval.judge.model import Judgement
from pytest_otval.judge.records import append, read

NAME = "labels.jsonl"
FINDINGS = ("stands", "executed", "advisory")
"""Standings of fails that are findings: nothing refuted or disproved them."""


def is_finding(judgement: Judgement) -> bool:
    """Whether a judge says in the end that there is a fault."""
    return judgement.outcome == "fail" and judgement.standing in FINDINGS


@dataclass(frozen=True, slots=True)
class Label:
    """One person about one judgement."""

    id: str
    """Of the item."""
    subject: str
    """As in ``Review``."""
    task_digest: str
    criterion: str
    model: str
    rubric: str
    """Its digest."""
    outcome: str
    finding: StrictBool
    agrees: StrictBool
    by: str
    note: str
    run: str
    time: str
    """UTC, ISO 8601."""


def add_label(folder: Path, label: Label) -> None:
    """Write a label down; a later one of the same person about the same judgement replaces it. Raises OSError."""
    append(folder / NAME, asdict(label))


def labels(folder: Path) -> Iterator[Label]:
    """Yield the labels that count, in the order of their first appearance. Raises OSError."""
    found: dict[tuple[str, ...], Label] = {}
    for label in filter(None, map(_label, read(folder / NAME))):
        about = (label.id, label.subject, label.task_digest, label.criterion, label.model, label.rubric, label.by)
        found[about] = label
    yield from found.values()


def agreement(found: Iterable[Label], model: str, rubric: str) -> Mapping[str, tuple[int, int]]:
    """Return of each criterion how many findings of a model by a rubric people agreed and disagreed with."""
    counts: Counter[tuple[str, bool]] = Counter(
        (one.criterion, one.agrees) for one in found if one.finding and (one.model, one.rubric) == (model, rubric)
    )
    return {criterion: (counts[criterion, True], counts[criterion, False]) for criterion, _ in counts}


def _label(values: Mapping[str, Any]) -> Label | None:
    """Return the label of a line; None for one that is none."""
    try:
        return _ADAPTER.validate_python(values)
    except ValueError:
        return None


_ADAPTER = TypeAdapter(Label)
