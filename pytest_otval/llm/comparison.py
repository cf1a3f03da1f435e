"""Models compared by the tasks that both tried, and tasks by whether they tell good models from bad ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from pytest_otval.llm.bootstrap import Mean, means
from pytest_otval.llm.estimates import Interval
from pytest_otval.llm.tables import TaskRow, shown_ks
from pytest_otval.llm.worth import Difference, difference, item_total


@dataclass(frozen=True, slots=True)
class DifferenceAtK:
    """Of pass@k, in the mean over the tasks at which both have k valid attempts."""

    k: int
    first: float | None
    second: float | None
    """None where there are no such tasks."""
    difference: Mean


@dataclass(frozen=True, slots=True)
class Comparison:
    """How much more often the first solves tasks than the second."""

    tasks: dict[tuple[str, str], Difference]
    """By dataset and task, for tasks at which both have valid attempts."""
    pass_at: tuple[DifferenceAtK, ...]
    """There is always one for k = 1."""

    @property
    def mean(self) -> Mean:
        """Over these tasks, each against itself: what is hard for both says nothing about the difference."""
        return self.pass_at[0].difference

    @property
    def interval(self) -> Interval | None:
        """Of the mean; of a lone task Newcombe's. None where neither is known."""
        if len(self.tasks) == 1:
            return next(iter(self.tasks.values())).interval
        low, high = self.mean.low, self.mean.high
        return None if low is None or high is None else Interval(low, high)


def compare(rows: Sequence[TaskRow], first: str, second: str, seed: int = 0) -> Comparison:
    """Return the difference between two models, from the attempts that are valid."""
    return compared([row for row in rows if row.model == first], [row for row in rows if row.model == second], seed)


def compared(first: Iterable[TaskRow], second: Iterable[TaskRow], seed: int = 0) -> Comparison:
    """Return the difference between two sets of rows, each of which has a task once."""
    ours = {(row.dataset, row.task): row for row in first if row.without_invalid}
    theirs = {(row.dataset, row.task): row for row in second if row.without_invalid}
    both = sorted(ours.keys() & theirs.keys())
    pairs = [(ours[key], theirs[key]) for key in both]
    ks = shown_ks(max((min(_valid(one), _valid(other)) for one, other in pairs), default=1))
    at_k = [[_pass_at(k, *pair) for pair in pairs] for k in ks]
    columns = [[None if both is None else both[0] - both[1] for both in column] for column in at_k]
    clusters = [f"{key[0]}: {ours[key].cluster}" for key in both]
    found = {key: difference(_counts(one), _counts(other)) for key, (one, other) in zip(both, pairs, strict=True)}
    differences = zip(ks, at_k, means(columns, clusters, seed, shares=False), strict=True)
    return Comparison(found, tuple(DifferenceAtK(k, *_means(column), mean) for k, column, mean in differences))


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


def _valid(row: TaskRow) -> int:
    return row.denominators.scored


def _counts(row: TaskRow) -> tuple[int, int]:
    return _valid(row), row.counts.solved


def _pass_at(k: int, first: TaskRow, second: TaskRow) -> tuple[float, float] | None:
    one, other = first.without_invalid, second.without_invalid
    if one is None or other is None or min(one.count, other.count) < k:
        return None
    return one.pass_at[k - 1], other.pass_at[k - 1]


def _means(pairs: Iterable[tuple[float, float] | None]) -> tuple[float | None, float | None]:
    known = [pair for pair in pairs if pair is not None]
    return (fmean(one for one, _ in known), fmean(other for _, other in known)) if known else (None, None)
