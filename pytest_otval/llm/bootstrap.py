"""Means over the tasks of a dataset, with intervals that know of tasks that stand together.

Tasks of one repository, or over one base image, are hard or easy together: as many of them say less than as many tasks
of their own would. So whole clusters are drawn, as often as there are clusters, with replacement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_otval.llm.estimates import COVERAGE, wilson

RESAMPLES = 4000
"""How often clusters are drawn. The ends of an interval vary by about 2 % of its width with the seed."""

FEW = 20
"""With fewer an interval covers the truth more rarely than it says: docs/teacher-statistics.md says how often."""

_AT_ONCE = 4_000_000
"""How many numbers of clusters are drawn at a time: 64 MB."""

_SAME = 1e-12


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over tasks, each of which counts once."""

    value: float | None
    """None for no tasks."""
    low: float | None
    high: float | None
    tasks: int
    """Those that have a value: of pass@k those with at least k attempts."""
    clusters: int
    caveat: str
    """What keeps the interval from being what it says, or from being there; else empty."""


def means(
    columns: Sequence[Sequence[float | None]], clusters: Sequence[str], seed: int = 0, shares: bool = True
) -> list[Mean]:
    """Return for each column the mean over tasks with a 95 % interval, all from the same draws of clusters.

    ``columns``: one value a task, None where it has none; ``clusters``: the name of each task's cluster; ``shares``:
    whether values lie between 0 and 1, where intervals end. The interval is the bootstrap's percentile interval,
    widened as Hesterberg, What Teachers Should Know About the Bootstrap, The American Statistician 69 (2015), 371-386
    proposes: by what a t interval is wider than a normal one.
    """
    import numpy as np

    if not columns:
        return []
    values = np.array([[np.nan if one is None else one for one in column] for column in columns], dtype=float)
    names, codes = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
    known = ~np.isnan(values)
    sums = np.array([np.bincount(codes, row, len(names)) for row in np.nan_to_num(values)])
    sizes = np.array([np.bincount(codes, row, len(names)) for row in known])
    drawn = _drawn(sums, sizes, seed)
    return [_mean(*parts, shares) for parts in zip(sums, sizes, drawn, strict=True)]


def _drawn(sums: Any, sizes: Any, seed: int) -> Any:
    """Return the means of ``RESAMPLES`` draws of clusters, one row a column of values; NaN where no task was drawn."""
    import numpy as np

    count = sums.shape[1]
    if count < 2:
        return np.empty((len(sums), 0))
    dice = np.random.default_rng(seed)
    found, left = [], RESAMPLES
    while left:
        rows = min(left, max(1, _AT_ONCE // count))
        picked = dice.integers(0, count, size=(rows, count))
        picked += np.arange(rows)[:, None] * count
        times = np.bincount(picked.ravel(), minlength=rows * count).reshape(rows, count).astype(float)
        with np.errstate(invalid="ignore"):
            found.append((times @ sums.T) / (times @ sizes.T))
        left -= rows
    return np.concatenate(found).T


def _mean(sums: Any, sizes: Any, drawn: Any, shares: bool) -> Mean:
    import numpy as np

    tasks = int(sizes.sum())
    if tasks == 0:
        return Mean(None, None, None, 0, 0, "no task has enough attempts")
    there = sizes > 0
    value, clusters = float(sums.sum() / tasks), int(there.sum())
    if clusters == 1:
        return Mean(value, None, None, tasks, 1, "one cluster says nothing of others: no interval")
    if np.ptp(sums[there] / sizes[there]) < _SAME:
        return _all_alike(value, tasks, clusters, shares)
    tail = _tail(clusters)
    low, high = np.nanquantile(drawn, (tail, 1 - tail))
    caveat = f"{clusters} clusters are few: the interval is too narrow" if clusters < FEW else ""
    return Mean(value, float(low), float(high), tasks, clusters, caveat)


def _all_alike(value: float, tasks: int, clusters: int, shares: bool) -> Mean:
    """Draws of what is all alike do not differ; shares of none and all have an interval, with clusters as attempts."""
    if not shares or _SAME < value < 1 - _SAME:
        return Mean(value, None, None, tasks, clusters, "all clusters have the same mean: no interval")
    ends = wilson(clusters, clusters if value > 0.5 else 0)
    caveat = "all tasks are alike: Wilson's interval, with each cluster as one attempt"
    return Mean(value, ends.low, ends.high, tasks, clusters, caveat)


def _tail(clusters: int) -> float:
    """Return the share of draws beyond each end."""
    from scipy.stats import norm, t  # type: ignore[import-untyped]

    reach = t.ppf((1 + COVERAGE) / 2, clusters - 1) * (clusters / (clusters - 1)) ** 0.5
    return float(norm.sf(reach))
