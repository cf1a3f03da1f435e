"""What the pages say of each model at each dataset, and of models against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from pytest_otval.llm.attempts import OUTCOMES, Attempt
from pytest_otval.llm.comparison import compared
from pytest_otval.llm.tables import QUANTILES, AtK, DatasetRow, TaskRow
from pytest_otval.llm.worth import BANDS
from pytest_otval.report.attempt_summary import caveats, denominators_told
from pytest_otval.report.html.blocks import (
    Block,
    Cell,
    bars,
    cost,
    curves,
    link,
    mean_share,
    name_of,
    number,
    ranges,
    share,
    table,
    words,
)

MOST_RANGES = 60
"""Tasks of which a person can still see the intervals in one plot; of more their rates are counted."""

MOST_VERBS = 20
MOST_MODELS = 12
"""Of a dataset, the first by name: so many are compared, each with each."""

Discrimination = Mapping[tuple[str, str], float | None]


def overview(sets: Sequence[DatasetRow], tasks: Mapping[tuple[str, str], Sequence[TaskRow]]) -> list[Block]:
    """Return the first page: all models, and what differs between them."""
    head = ["Model", "Dataset", "Tasks", "Planned", "Ran", "Errors", "Invalid", "Solved", "pass@1", "without invalid"]
    rows = [_set_cells(row, tasks[row.dataset, row.model]) for row in sets]
    shown = table("Models", [*head, "largest k", "pass@k", "pass^k", "Flagged"], rows)
    pairs = list(_compared(sets, tasks))
    if not pairs:
        return [shown]
    note = "Over tasks that both tried, without invalid attempts. An interval that holds 0 shows no difference."
    heads = ("Dataset", "Model", "against", "Tasks", "pass@1 more by", "k", "pass@k more by")
    return [shown, table("Models against each other", heads, pairs, note)]


def _set_cells(row: DatasetRow, tasks: Sequence[TaskRow]) -> list[Cell]:
    parts = row.denominators
    counts = (row.tasks, parts.planned, parts.ran, parts.errors, parts.excluded - parts.errors)
    solved = sum(task.counts.solved for task in tasks)
    first = row.pass_at[0] if row.pass_at else None
    last = row.pass_at[-1] if row.pass_at else None
    return [
        link(row.model, dataset=row.dataset, model=row.model),
        name_of(row.dataset),
        *map(number, (*counts, solved)),
        *_first(first, tasks),
        number(last.k if last else None),
        mean_share(last.with_failures) if last else "-",
        mean_share(row.pass_all[-1].with_failures) if last else "-",
        number(row.flagged),
    ]


def _first(first: AtK | None, tasks: Sequence[TaskRow]) -> tuple[Cell, Cell]:
    """Return pass@1 in both brackets; of a lone task it has Wilson's interval."""
    if len(tasks) == 1:
        lone = tasks[0].with_failures, tasks[0].without_invalid
        failures, valid = (share(one.rate, one.wilson) if one else "-" for one in lone)
        return failures, valid
    return (mean_share(first.with_failures), mean_share(first.without_invalid)) if first else ("-", "-")


def _compared(sets: Sequence[DatasetRow], tasks: Mapping[tuple[str, str], Sequence[TaskRow]]) -> Iterator[list[Cell]]:
    for dataset in sorted({row.dataset for row in sets}):
        models = sorted(row.model for row in sets if row.dataset == dataset)[:MOST_MODELS]
        for first, second in combinations(models, 2):
            found = compared(tasks[dataset, first], tasks[dataset, second])
            last = found.pass_at[-1]
            yield [
                *(name_of(dataset), name_of(first), name_of(second), number(found.mean.tasks)),
                *(share(found.mean.value, found.interval), number(last.k), mean_share(last.difference)),
            ]


def model_blocks(
    row: DatasetRow, tasks: Sequence[TaskRow], attempts: Sequence[Attempt], discrimination: Discrimination
) -> list[Block]:
    """Return the page of one model at one dataset."""
    return [
        words("", [denominators_told(row, tasks)]),
        *_rates(row),
        *_difficulty(row, tasks),
        _worth(row, tasks, attempts),
        _task_table(tasks, discrimination),
        *_worked(row, attempts),
    ]


def _rates(row: DatasetRow) -> Iterator[Block]:
    ks = [at.k for at in row.pass_at]
    if not ks:
        return
    series = {
        "pass@k, invalid as failures": [at.with_failures for at in row.pass_at],
        "pass@k, without invalid": [at.without_invalid for at in row.pass_at],
        "pass^k, without invalid": [at.without_invalid for at in row.pass_all],
    }
    yield curves("How often one of k attempts solves a task, and all of k", ks, series)
    head = ["k", "Tasks", "pass@k", "Tasks", "without invalid", "pass^k", "without invalid"]
    rows = [
        [
            *(number(some.k), number(some.with_failures.tasks), mean_share(some.with_failures)),
            *(number(some.without_invalid.tasks), mean_share(some.without_invalid)),
            *(mean_share(every.with_failures), mean_share(every.without_invalid)),
        ]
        for some, every in zip(row.pass_at, row.pass_all, strict=True)
    ]
    yield table("pass@k and pass^k", head, rows, "; ".join(caveats(row.pass_at)))


def _difficulty(row: DatasetRow, tasks: Sequence[TaskRow]) -> Iterator[Block]:
    note = "never and always are of the attempts that were made: few of them tell little."
    yield bars("Difficulty", ["tasks"], {band: [row.bands.get(band, 0)] for band in BANDS}, note)
    known = [(task.task, task.without_invalid) for task in tasks if task.without_invalid]
    if len(known) <= MOST_RANGES:
        ordered = sorted(known, key=lambda pair: (-pair[1].rate, pair[0]))
        yield ranges("Rates of tasks, with Wilson's interval", ((name, one.rate, one.wilson) for name, one in ordered))
    else:
        counts = Counter(min(int(10 * one.rate), 9) for _, one in known)
        tenths = {f"{at / 10:.1f} to {(at + 1) / 10:.1f}": [counts[at]] for at in range(10)}
        yield bars("Rates of tasks", ["tasks"], tenths)


def _worth(row: DatasetRow, tasks: Sequence[TaskRow], attempts: Sequence[Attempt]) -> Block:
    """What the dataset is worth to those who train the model, and what it costs them."""
    signal = mean_share(row.signal)
    told = signal["text"] if isinstance(signal, dict) else signal
    lines = [f"Training signal p(1-p), the variance of the reward, in the mean over tasks: {told}; at most 0.25."]
    valid = [attempt for attempt in attempts if attempt.valid]
    if solved := sum(task.counts.solved for task in tasks):
        tokens = sum(attempt.tokens for attempt in valid) / solved
        seconds = sum(attempt.seconds.get("total", 0.0) for attempt in valid) / solved
        lines.append(f"One success took {tokens:,.0f} tokens and {seconds:,.0f} s of attempts, over all tasks.")
    if row.usd is not None:
        lines.append(f"All attempts cost {row.usd:,.2f} USD.")
    return words("Worth", lines)


_TASK_HEAD = (
    *("Task", "Ran", "Invalid", "Solved", "Mean reward", "Rate, invalid as failures", "Rate without invalid"),
    *("Beta(1,1)", "Band", "may be", "p(1-p)", "Tokens to one success", "Seconds to one success", "Discrimination"),
    "Flagged",
)


def _task_table(tasks: Sequence[TaskRow], discrimination: Discrimination) -> Block:
    note = (
        "Intervals of rates are Wilson's. Discrimination: how a task's rate goes with that at other tasks, over "
        "models; below 0 worse models do better."
    )
    return table("Tasks", _TASK_HEAD, (_task_cells(task, discrimination) for task in tasks), note)


def _task_cells(row: TaskRow, discrimination: Discrimination) -> list[Cell]:
    failures, valid = row.with_failures, row.without_invalid
    beta = valid.beta if valid else None
    return [
        link(row.task, dataset=row.dataset, task=row.task),
        number(row.denominators.ran - row.denominators.errors),
        number(row.counts.invalid),
        number(row.counts.solved),
        number(row.rewards.mean if row.rewards else None, 3),
        share(failures.rate, failures.wilson) if failures else "-",
        share(valid.rate, valid.wilson) if valid else "-",
        f"{beta.low:.3f} to {beta.high:.3f}" if beta else "-",
        row.band.name if row.band else "-",
        ", ".join(row.band.possible) if row.band else "-",
        number(row.signal, 3),
        cost(row.tokens),
        cost(row.seconds, 1),
        number(discrimination.get((row.dataset, row.task)), 2),
        number(row.flagged),
    ]


def _worked(row: DatasetRow, attempts: Sequence[Attempt]) -> Iterator[Block]:
    """How attempts went, solved and not."""
    yield bars("Why attempts ended", OUTCOMES, _by_outcome(attempts, lambda one: one.finish or "-"))
    for title, value in _SIZES.items():
        yield bars(title, OUTCOMES, _sizes(attempts, value), "Each bin ends where twice its beginning is.")
    heads = [f"{share:.0%}" for share in QUANTILES]
    rows = [[name, *(number(value, 2) for value in values)] for name, values in sorted(row.quantiles.items())]
    yield table("Quantiles over attempts", ["", *heads], rows)
    shares = [[name, share(value)] for name, value in row.shares.items()]
    yield table("How it worked", ["Share of", ""], shares, "docs/teacher-statistics.md says what each can tell.")
    kinds = _summed(attempt.statistics.kinds for attempt in attempts)
    yield bars("What steps did", ["steps"], {name: [count] for name, count in kinds.most_common()})
    verbs = _summed(attempt.statistics.verbs for attempt in attempts)
    yield bars("Programs in commands", ["times"], {name: [count] for name, count in verbs.most_common(MOST_VERBS)})
    if row.flags:
        yield bars("Flags, for the judge to look at", OUTCOMES, _flagged(attempts))


_SIZES: Mapping[str, Callable[[Attempt], float]] = {
    "Steps": lambda one: one.statistics.steps,
    "Tokens": lambda one: one.tokens,
    "Seconds": lambda one: one.seconds.get("total", 0.0),
}


def _by_outcome(attempts: Iterable[Attempt], key: Callable[[Attempt], str]) -> dict[str, list[int]]:
    counts = Counter((key(one), one.outcome) for one in attempts)
    return {name: [counts[name, outcome] for outcome in OUTCOMES] for name in sorted({name for name, _ in counts})}


def _sizes(attempts: Sequence[Attempt], value: Callable[[Attempt], float]) -> dict[str, list[int]]:
    """Return how many attempts of each outcome have a size within each power of two, from the least to the greatest."""
    counts = Counter((int(value(one)).bit_length(), one.outcome) for one in attempts)
    powers = [power for power, _ in counts]
    return {
        _bin(power): [counts[power, outcome] for outcome in OUTCOMES] for power in range(min(powers), max(powers) + 1)
    }


def _bin(power: int) -> str:
    low, high = 2 ** (power - 1) if power else 0, 2**power - 1
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _summed(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return total


def _flagged(attempts: Iterable[Attempt]) -> dict[str, list[int]]:
    counts = Counter((flag, one.outcome) for one in attempts for flag in one.flags)
    return {name: [counts[name, outcome] for outcome in OUTCOMES] for name in sorted({name for name, _ in counts})}
