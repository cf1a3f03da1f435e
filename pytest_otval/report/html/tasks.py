"""What the pages say of one task: how often each model solved it, and each of its attempts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_otval.llm.attempts import Attempt
from pytest_otval.llm.estimates import Estimate
from pytest_otval.llm.tables import TaskRow, shown_ks
from pytest_otval.report.html.blocks import Block, Cell, link, name_of, number, share, table
from pytest_otval.report.text import one_line

HEADLINE_LETTERS = 200

Place = tuple[int, int]
"""Which file of trajectories, and which of those in it."""


def task_page(
    rows: Sequence[TaskRow], attempts: Sequence[tuple[Attempt, str]], places: Mapping[str, Place]
) -> dict[str, Any]:
    """Return the page of a task: ``rows`` are of its models; each attempt comes with its item and headline.

    ``places``: of the items whose trajectories are among the pages.
    """
    heads = ("Attempt", "Model", "Outcome", "Reward", "Steps", "Tokens", "Seconds", "Ended by", "Flags", "Class")
    shown = [_attempt_cells(attempt, item) for attempt, item in attempts]
    return {
        "blocks": [*map(_rates, rows), table("Attempts", heads, shown)],
        "places": {one_line(item): list(places[item]) for _, item in attempts if item in places},
    }


def _rates(row: TaskRow) -> Block:
    failures, valid = row.with_failures, row.without_invalid
    ks = shown_ks(failures.count if failures else 0)
    heads = ("k", "pass@k, invalid as failures", "without invalid", "pass^k, invalid as failures", "without invalid")
    cells = [
        [number(k), *(_at(one, name, k) for name in ("pass_at", "pass_all") for one in (failures, valid))] for k in ks
    ]
    return table(f"{name_of(row.model)}", heads, cells, "; ".join(_notes(row)))


def _at(estimate: Estimate | None, name: str, k: int) -> Cell:
    return share(getattr(estimate, name)[k - 1]) if estimate is not None and k <= estimate.count else "-"


def _notes(row: TaskRow) -> Iterator[str]:
    for name, one in (("invalid as failures", row.with_failures), ("without invalid", row.without_invalid)):
        if one is not None:
            wilson, beta = one.wilson, one.beta
            yield (
                f"{name}: {one.solved} of {one.count}, Wilson {wilson.low:.3f} to {wilson.high:.3f},"
                f" Beta(1,1) {beta.low:.3f} to {beta.high:.3f}"
            )
    if row.without_invalid is not None and row.without_invalid.still_allows:
        yield row.without_invalid.still_allows
    if row.rewards is not None and row.rewards.variance is not None:
        mean, variance = row.rewards.mean, row.rewards.variance
        reached = f"{row.rewards.reached} of {row.rewards.count} reach {row.rewards.threshold:g}"
        yield f"reward: mean {mean:.3f}, variance {variance:.3f}, {reached}"
    if row.band is not None:
        yield f"{row.band.name}, may be {' or '.join(row.band.possible)}"


def _attempt_cells(attempt: Attempt, item: str) -> list[Cell]:
    return [
        link(item, dataset=attempt.dataset, task=attempt.task, item=item),
        name_of(attempt.model),
        attempt.outcome,
        number(attempt.reward, 3),
        number(attempt.statistics.steps),
        number(attempt.tokens),
        number(attempt.seconds.get("total"), 1),
        name_of(attempt.finish) + (", truncated" if attempt.truncated else ""),
        name_of(", ".join(attempt.flags)),
        name_of(attempt.reason),
    ]
