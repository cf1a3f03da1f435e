"""Tables of tasks and datasets, from the rows of their attempts. Each model of each dataset stands for itself."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_otval.llm import worth
from pytest_otval.llm.attempts import Attempt
from pytest_otval.llm.bootstrap import Mean, means
from pytest_otval.llm.estimates import Counts, Denominators, Estimate, denominators

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

ALL_UP_TO = 8
"""Of pass@k over a dataset every k up to here is shown, then powers of two and the largest."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """What the attempts of one model say about one task."""

    dataset: str
    model: str
    task: str
    cluster: str
    counts: Counts
    denominators: Denominators
    with_failures: Estimate | None
    without_invalid: Estimate | None
    """None where no attempt was valid; so is all below but ``flagged``, which is of the valid attempts."""
    rewards: worth.Rewards | None
    signal: float | None
    mixed: tuple[float, ...]
    band: worth.Band | None
    tokens: worth.CostToSolve | None
    seconds: worth.CostToSolve | None
    usd: worth.CostToSolve | None
    """None where one of the attempts has no price."""
    flagged: int
    """Solved attempts with a flag."""


@dataclass(frozen=True, slots=True)
class AtK:
    """A mean over tasks for one k, in both brackets."""

    k: int
    with_failures: Mean
    without_invalid: Mean


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """What the attempts of one model say about a dataset."""

    dataset: str
    model: str
    tasks: int
    denominators: Denominators
    pass_at: tuple[AtK, ...]
    pass_all: tuple[AtK, ...]
    signal: Mean
    bands: Mapping[str, int]
    finishes: Mapping[str, int]
    flags: Mapping[str, int]
    """Attempts that have each; of all, solved or not."""
    flagged: int
    """Solved attempts with a flag."""
    usd: float | None
    quantiles: Mapping[str, tuple[float, ...]]
    """Of QUANTILES, over attempts: of tokens, steps, and of ``seconds:`` by phase."""
    shares: Mapping[str, float]
    """Of steps, commands or attempts; see ``_shares``."""


def task_rows(attempts: Iterable[Attempt], planned: int | None = None, threshold: float = 1.0) -> list[TaskRow]:
    """Return a row for each dataset, model and task, in their order by name.

    ``planned``: how many attempts each task was to have. ``threshold``: which reward is counted as reached.
    """
    groups: dict[tuple[str, str, str], list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        groups[attempt.dataset, attempt.model, attempt.task].append(attempt)
    return [_task_row(key, group, planned, threshold) for key, group in sorted(groups.items())]


def _task_row(key: tuple[str, str, str], attempts: Sequence[Attempt], planned: int | None, threshold: float) -> TaskRow:
    valid = [attempt for attempt in attempts if attempt.valid]
    of = Counter(attempt.outcome for attempt in attempts)
    counts = Counts(of["solved"], of["unsolved"], of["invalid"], of["error"])
    solved = counts.solved
    rewards = [attempt.reward for attempt in valid if attempt.reward is not None]
    dataset, model, task = key
    tried = len(valid)
    return TaskRow(
        dataset=dataset,
        model=model,
        task=task,
        cluster=attempts[0].cluster or f"task {task}",
        counts=counts,
        denominators=denominators(counts, planned),
        with_failures=counts.with_failures,
        without_invalid=counts.without_invalid,
        rewards=worth.rewards_of(rewards, threshold) if rewards else None,
        signal=worth.training_signal(tried, solved),
        mixed=worth.mixed_groups(tried, solved),
        band=worth.band(tried, solved) if tried else None,
        tokens=_cost([attempt.tokens for attempt in valid], solved),
        seconds=_cost([attempt.seconds.get("total", 0.0) for attempt in valid], solved),
        usd=_cost([attempt.usd for attempt in valid], solved),
        flagged=sum(attempt.solved and attempt.flags != () for attempt in valid),
    )


def _cost(costs: Sequence[float | None], solved: int) -> worth.CostToSolve | None:
    known = [cost for cost in costs if cost is not None]
    return worth.cost_to_solve(sum(known), len(known), solved) if costs and len(known) == len(costs) else None


def dataset_rows(attempts: Sequence[Attempt], tasks: Sequence[TaskRow], seed: int = 0) -> list[DatasetRow]:
    """Return a row for each dataset and model; ``tasks`` are the ``task_rows`` of the same attempts."""
    of_attempts: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
    of_tasks: dict[tuple[str, str], list[TaskRow]] = defaultdict(list)
    for attempt in attempts:
        of_attempts[attempt.dataset, attempt.model].append(attempt)
    for task in tasks:
        of_tasks[task.dataset, task.model].append(task)
    return [_dataset_row(key, of_attempts[key], rows, seed) for key, rows in sorted(of_tasks.items())]


def _dataset_row(key: tuple[str, str], attempts: Sequence[Attempt], tasks: Sequence[TaskRow], seed: int) -> DatasetRow:
    ks = shown_ks(max(task.denominators.ran - task.denominators.errors for task in tasks))
    columns = [column for name in ("pass_at", "pass_all") for k in ks for column in _brackets(tasks, name, k)]
    clusters = [task.cluster for task in tasks]
    *found, signal = means([*columns, [task.signal for task in tasks]], clusters, seed)
    at_k = [AtK(k, *found[2 * place : 2 * place + 2]) for place, k in enumerate((*ks, *ks))]
    prices = [attempt.usd for attempt in attempts if attempt.usd is not None]
    return DatasetRow(
        dataset=key[0],
        model=key[1],
        tasks=len(tasks),
        denominators=_together(task.denominators for task in tasks),
        pass_at=tuple(at_k[: len(ks)]),
        pass_all=tuple(at_k[len(ks) :]),
        signal=signal,
        bands=_counted((task.band.name for task in tasks if task.band), worth.BANDS),
        finishes=_counted(attempt.finish for attempt in attempts),
        flags=_counted(flag for attempt in attempts for flag in attempt.flags),
        flagged=sum(task.flagged for task in tasks),
        usd=sum(prices) if len(prices) == len(attempts) else None,
        quantiles=_quantiles(attempts),
        shares=_shares(attempts),
    )


def shown_ks(most: int) -> list[int]:
    """Return the k that are shown where a task has at most so many attempts; none for 0."""
    powers = [2**power for power in range(most.bit_length()) if 2**power > ALL_UP_TO]
    return sorted({*range(1, min(most, ALL_UP_TO) + 1), *powers, most} - {0})


def _brackets(tasks: Sequence[TaskRow], name: str, k: int) -> list[list[float | None]]:
    """Return a column for each bracket; a task with fewer than k attempts has no value."""
    estimates = ([task.with_failures for task in tasks], [task.without_invalid for task in tasks])
    return [
        [getattr(one, name)[k - 1] if one is not None and one.count >= k else None for one in column]
        for column in estimates
    ]


def _together(parts: Iterable[Denominators]) -> Denominators:
    known = list(parts)
    return Denominators(
        sum(one.planned for one in known),
        sum(one.ran for one in known),
        sum(one.excluded for one in known),
        sum(one.scored for one in known),
        sum(one.errors for one in known),
    )


def _counted(names: Iterable[str], order: Sequence[str] = ()) -> dict[str, int]:
    counts = Counter(names)
    return {name: counts[name] for name in (order or sorted(counts)) if counts[name]}


def _quantiles(attempts: Sequence[Attempt]) -> dict[str, tuple[float, ...]]:
    import numpy as np

    columns: dict[str, list[float]] = defaultdict(list)
    for attempt in attempts:
        columns["tokens"].append(attempt.tokens)
        columns["steps"].append(attempt.statistics.steps)
        for phase, seconds in attempt.seconds.items():
            columns[f"seconds:{phase}"].append(seconds)
    return {name: tuple(map(float, np.quantile(column, QUANTILES))) for name, column in columns.items()}


def _shares(attempts: Sequence[Attempt]) -> dict[str, float]:
    """Return rates over all attempts together; one whose denominator is 0 is left out."""
    seen = [attempt.statistics for attempt in attempts]
    total: Mapping[str, Any] = {
        name: sum(getattr(one, name) for one in seen)
        for name in (
            *("steps", "commands", "failed", "malformed", "nonzero", "timeouts", "repeated_steps", "steps_in_loops"),
            *("model_seconds", "command_seconds", "edited_files", "read_before_edit", "claimed_success"),
            *("self_verified",),
        )
    }
    unsolved = [attempt for attempt in attempts if attempt.valid and not attempt.solved]
    parts = {
        "failed steps": (total["failed"], total["steps"]),
        "malformed steps": (total["malformed"], total["steps"]),
        "non-zero commands": (total["nonzero"], total["commands"]),
        "timed-out commands": (total["timeouts"], total["commands"]),
        "repeated steps": (total["repeated_steps"], total["steps"]),
        "steps in loops": (total["steps_in_loops"], total["steps"]),
        "model's time": (total["model_seconds"], total["model_seconds"] + total["command_seconds"]),
        "edited files read before": (total["read_before_edit"], total["edited_files"]),
        "attempts self-verified": (total["self_verified"], len(attempts)),
        "attempts truncated": (sum(attempt.truncated for attempt in attempts), len(attempts)),
        "unsolved attempts claimed": (sum(one.statistics.claimed_success for one in unsolved), len(unsolved)),
    }
    return {name: part / whole for name, (part, whole) in parts.items() if whole}
