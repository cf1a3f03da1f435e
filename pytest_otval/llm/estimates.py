"""How often a model solves a task, from counts of its attempts: pass@k, pass^k and intervals of the rate.

An attempt is solved, unsolved, or invalid: the verifier gave no score, so nothing is known of the model. What invalid
attempts would have been is open, so every figure comes twice: with them as failures, and without them. Where the
machine or the endpoint was at fault there was no attempt at all, and it is in neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

COVERAGE = 0.95
"""Of all intervals here."""

_KEPT = 256
"""How many tables of pass@k are kept: tasks with as many attempts and solutions share them."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Both ends included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """What ``solved`` of ``count`` attempts say, where ``count`` is at least 1."""

    count: int
    solved: int
    pass_at: tuple[float, ...]
    """pass@k for k from 1 to ``count``: that at least one of k attempts solves the task."""
    pass_all: tuple[float, ...]
    """pass^k for k from 1 to ``count``: that all of k attempts do."""
    wilson: Interval
    beta: Interval

    @property
    def rate(self) -> float:
        """The share of solved attempts."""
        return self.solved / self.count

    @property
    def still_allows(self) -> str:
        """In words, what none or all of the attempts leave open; empty where some solved the task and some did not."""
        if self.solved == 0:
            return f"0 of {self.count} still allows a rate up to {_percent(self.wilson.high)}"
        if self.solved == self.count:
            return f"{self.count} of {self.count} still allows a rate down to {_percent(self.wilson.low)}"
        return ""


def _percent(share: float) -> str:
    """Return a share in words that are never those of none or all."""
    percent = 100 * share
    return f"{percent:.{0 if 1 <= percent <= 99 else 3}f} %"


@dataclass(frozen=True, slots=True)
class Counts:
    """The attempts of one model at one task."""

    solved: int
    unsolved: int
    invalid: int = 0
    errors: int = 0
    """Attempts that came to nothing by a fault of the machine or the endpoint."""

    @property
    def with_failures(self) -> Estimate | None:
        """The lower bracket: invalid attempts as failures. None without any attempt."""
        return estimate(self.solved + self.unsolved + self.invalid, self.solved)

    @property
    def without_invalid(self) -> Estimate | None:
        """The upper bracket: invalid attempts as if they had not been made. None where no other was."""
        return estimate(self.solved + self.unsolved, self.solved)


@dataclass(frozen=True, slots=True)
class Denominators:
    """What rates are taken of. ``planned`` >= ``ran`` = ``excluded`` + ``scored``."""

    planned: int
    ran: int
    """Those that ended, in whatever way."""
    excluded: int
    """Those among them of which the model is not scored: invalid ones and errors."""
    scored: int
    errors: int = 0
    """Of the excluded ones."""


def denominators(counts: Counts, planned: int | None = None) -> Denominators:
    """Return the denominators of attempts, of which as many were planned as ran unless ``planned`` says more."""
    scored = counts.solved + counts.unsolved
    excluded = counts.invalid + counts.errors
    ran = scored + excluded
    return Denominators(max(ran, planned or 0), ran, excluded, scored, counts.errors)


def estimate(count: int, solved: int) -> Estimate | None:
    """Return what ``solved`` of ``count`` attempts say; None for no attempts."""
    if count == 0:
        return None
    return Estimate(
        count, solved, pass_at(count, solved), pass_all(count, solved), wilson(count, solved), beta(count, solved)
    )


@lru_cache(maxsize=_KEPT)
def pass_at(count: int, solved: int) -> tuple[float, ...]:
    """Return pass@k for k from 1 to ``count``, without bias: 1 - C(n-c, k) / C(n, k).

    Chen et al., Evaluating Large Language Models Trained on Code (2021), arXiv:2107.03374. Whole numbers until the last
    division, so that each is the double next to the true value. Raises ValueError unless 0 <= ``solved`` <= ``count``.
    """
    return tuple((whole - part) / whole for part, whole in _chosen(count - solved, count))


@lru_cache(maxsize=_KEPT)
def pass_all(count: int, solved: int) -> tuple[float, ...]:
    """Return pass^k for k from 1 to ``count``, without bias: C(c, k) / C(n, k); exact and raising as ``pass_at``.

    Yao et al., tau-bench (2024), arXiv:2406.12045.
    """
    return tuple(part / whole for part, whole in _chosen(solved, count))


def _chosen(part: int, whole: int) -> Iterator[tuple[int, int]]:
    """Yield how many ways there are to choose k of ``part`` and k of ``whole``, for k from 1 to ``whole``."""
    if not 0 <= part <= whole:
        raise ValueError(f"{part} of {whole} attempts")
    of_part = of_whole = 1
    for taken in range(whole):
        of_part = of_part * (part - taken) // (taken + 1)
        of_whole = of_whole * (whole - taken) // (taken + 1)
        yield of_part, of_whole


@lru_cache(maxsize=4096)
def wilson(count: int, solved: int) -> Interval:
    """Return Wilson's score interval of the rate (1927), without correction for continuity.

    Its coverage is 95 % in the mean over rates, and less near 0 and 1: not below 79 % for one attempt, 83 % for four.
    """
    from scipy.stats import binomtest  # type: ignore[import-untyped]

    found = binomtest(solved, count).proportion_ci(COVERAGE, method="wilson")
    return Interval(max(0.0, float(found.low)), min(1.0, float(found.high)))


@lru_cache(maxsize=4096)
def beta(count: int, solved: int) -> Interval:
    """Return the equal-tailed interval of Beta(c + 1, n - c + 1): what is believed of a rate that nothing was known of.

    Rates that are drawn evenly from 0 to 1 lie in it in exactly 95 % of all cases.
    """
    from scipy.special import betaincinv  # type: ignore[import-untyped]

    a, b, tail = solved + 1, count - solved + 1, (1 - COVERAGE) / 2
    return Interval(float(betaincinv(a, b, tail)), float(betaincinv(a, b, 1 - tail)))
