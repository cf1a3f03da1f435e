"""Models compared by the tasks that both tried, and tasks by whether they tell good models from bad ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_otval.llm.bootstrap import Mean, means
from pytest_otval.llm.tables import TaskRow
from pytest_otval.llm.worth import Difference, difference, item_total


@dataclass(frozen=True, slots=True)
class Comparison:
    """How much more often the first model solves tasks than the second."""

    first: str
    second: str
    tasks: dict[tuple[str, str], Difference]
    """By dataset and task, for tasks at which both have valid attempts."""
    mean: Mean
    """Over these tasks, each against itself: what is hard for both says nothing about the difference."""


def compare(rows: Sequence[TaskRow], first: str, second: str, seed: int = 0) -> Comparison:
    """Return the difference between two models, from the attempts that are valid."""
    ours = {(row.dataset, row.task): row for row in rows if row.model == first and row.without_invalid}
    theirs = {(row.dataset, row.task): row for row in rows if row.model == second and row.without_invalid}
    both = sorted(ours.keys() & theirs.keys())
    found = {key: difference(_counts(ours[key]), _counts(theirs[key])) for key in both}
    clusters = [f"{key[0]}: {ours[key].cluster}" for key in both]
    return Comparison(first, second, found, means([[found[key].value for key in both]], clusters, seed)[0])


def discrimination(rows: Sequence[TaskRow]) -> dict[tuple[str, str], float | None]:
    """Return ``worth.item_total`` for each dataset and task, within its dataset, from the attempts that are valid."""
    rates: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows:
        if row.without_invalid is not None:
            rates.setdefault(row.dataset, {}).setdefault(row.task, {})[row.model] = row.without_invalid.rate
    found: dict[tuple[str, str], float | None] = {}
    for dataset, tasks in rates.items():
        models = sorted({model for task in tasks.values() for model in task})
        values = item_total([[task.get(model) for model in models] for task in tasks.values()])
        found.update(zip(((dataset, task) for task in tasks), values, strict=True))
    return found


def _counts(row: TaskRow) -> tuple[int, int]:
    return row.counts.solved + row.counts.unsolved, row.counts.solved
