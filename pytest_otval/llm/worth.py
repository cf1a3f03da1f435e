"""What a task is worth to those who train or compare models, from the counts and costs of its attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import fmean, variance

from pytest_otval.llm.estimates import Interval, pass_all, pass_at, wilson

HARD_BELOW = 0.25
EASY_FROM = 0.75
"""Limits of the bands of difficulty, as rates of solved attempts."""

BANDS = ("never", "hard", "medium", "easy", "always")

LEAST_MODELS = 3
"""For a correlation over models: two points lie on a line whatever they are."""


@dataclass(frozen=True, slots=True)
class Rewards:
    """Rewards that are more than solved or not."""

    count: int
    mean: float
    variance: float | None
    """Of the sample, without bias; None for one reward."""
    threshold: float
    reached: int
    """How many are at least ``threshold``."""


@dataclass(frozen=True, slots=True)
class CostToSolve:
    """What one solution costs if the task is attempted until it is solved, in the unit of the total."""

    value: float | None
    """The mean cost of an attempt over the rate; None where no attempt solved the task."""
    low: float
    """With the upper end of Wilson's interval as rate: where nothing was solved, the cost is likely not less."""
    high: float | None
    """With its lower end; None where that is 0."""


@dataclass(frozen=True, slots=True)
class Band:
    """How difficult a task is for a model."""

    name: str
    """One of BANDS."""
    possible: tuple[str, ...]
    """Which of hard, medium and easy Wilson's interval reaches into."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How much more often one model solves a task than another."""

    value: float
    interval: Interval


def rewards_of(rewards: Sequence[float], threshold: float) -> Rewards:
    """Return mean, variance and threshold of at least one reward. Raises ValueError for none, and for no numbers."""
    if not rewards or not all(map(isfinite, rewards)):
        raise ValueError("rewards have to be one finite number or more")
    spread = variance(rewards) if len(rewards) > 1 else None
    return Rewards(len(rewards), fmean(rewards), spread, threshold, sum(reward >= threshold for reward in rewards))


def training_signal(count: int, solved: int) -> float | None:
    """Return p(1-p) without bias: c(n-c) / n(n-1); None for fewer than two attempts.

    The true one is at most 0.25, an estimate from two attempts may be 0.5. It is the variance of a reward of 0 or 1,
    and with it the size of the gradient that a policy gets from the task.
    """
    return solved * (count - solved) / (count * (count - 1)) if count > 1 else None


def mixed_groups(count: int, solved: int) -> tuple[float, ...]:
    """Return, for k from 1 to ``count``, how probable it is that a group of k attempts has both outcomes.

    Without bias: pass@k - pass^k. A group of one outcome teaches nothing where advantages are relative to the group.
    """
    return tuple(some - every for some, every in zip(pass_at(count, solved), pass_all(count, solved), strict=True))


def cost_to_solve(total: float, count: int, solved: int) -> CostToSolve:
    """Return what one solution costs, where ``count`` attempts cost ``total``. Only the rate's uncertainty is in it."""
    mean, rate = total / count, wilson(count, solved)
    return CostToSolve(total / solved if solved else None, mean / rate.high, mean / rate.low if rate.low > 0 else None)


def band(count: int, solved: int) -> Band:
    """Return the band of difficulty."""
    rate = wilson(count, solved)
    reaches = {
        "hard": rate.low < HARD_BELOW,
        "medium": rate.low < EASY_FROM and rate.high >= HARD_BELOW,
        "easy": rate.high >= EASY_FROM,
    }
    possible = tuple(name for name, is_reached in reaches.items() if is_reached)
    return Band(_band_name(count, solved), possible)


def _band_name(count: int, solved: int) -> str:
    if solved in (0, count):
        return "always" if solved else "never"
    if solved < HARD_BELOW * count:
        return "hard"
    return "medium" if solved < EASY_FROM * count else "easy"


def difference(first: tuple[int, int], second: tuple[int, int]) -> Difference:
    """Return the difference of two rates, each (attempts, solved), with Newcombe's interval.

    Method 10 of Newcombe, Interval estimation for the difference between independent proportions, Statistics in
    Medicine 17 (1998), 873-890: Wilson's intervals, combined as squares.
    """
    one, two = first[1] / first[0], second[1] / second[0]
    of_one, of_two = wilson(*first), wilson(*second)
    value = one - two
    below = sqrt((one - of_one.low) ** 2 + (of_two.high - two) ** 2)
    above = sqrt((of_one.high - one) ** 2 + (two - of_two.low) ** 2)
    return Difference(value, Interval(max(-1.0, value - below), min(1.0, value + above)))


def item_total(rates: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Return for each task the correlation, over models, of its rate with the mean rate at all other tasks.

    ``rates``: for each task one rate a model, None where it has none. A task that better models solve more often has
    a value near 1; below 0 worse models do better, so that something is wrong with it. None where fewer than three
    models tried the task, or all did equally well at it or at the others.
    """
    import numpy as np

    table = np.array([[np.nan if rate is None else rate for rate in row] for row in rates], dtype=float)
    if table.size == 0:
        return [None] * len(rates)
    known = ~np.isnan(table)
    others = known.sum(axis=0) - known
    rest = np.where(known & (others > 0), np.nansum(table, axis=0) - np.nan_to_num(table), np.nan)
    rest /= np.maximum(others, 1)
    return [_correlation(*pair) for pair in zip(table, rest, strict=True)]


def _correlation(first: object, second: object) -> float | None:
    import numpy as np

    pairs = np.array([first, second], dtype=float)
    pairs = pairs[:, ~np.isnan(pairs).any(axis=0)]
    if pairs.shape[1] < LEAST_MODELS or np.any(np.ptp(pairs, axis=1) < 1e-12):
        return None
    return float(np.corrcoef(pairs)[0, 1])
