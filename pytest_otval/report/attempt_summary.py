"""What attempts of models add up to, as lines of text for the summary of a run: a short table a model and dataset."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from pytest_otval.llm.bootstrap import Mean
from pytest_otval.llm.estimates import Interval
from pytest_otval.llm.tables import AtK, DatasetRow, TaskRow, dataset_rows, task_rows
from pytest_otval.report.attempts import brief_attempts
from pytest_otval.report.results import Row
from pytest_otval.report.text import Text, one_line

MOST_EXAMPLES = 3
"""Tasks named in a line."""

_NAME_LETTERS = 40


def attempt_lines(rows: Sequence[Row], planned: int | None = None) -> Iterator[Text]:
    """Yield the lines; none where no model made an attempt. ``planned``: attempts of each model at each task."""
    attempts = list(brief_attempts(rows))
    if not attempts:
        return
    tasks = task_rows(attempts, planned)
    by_model: dict[tuple[str, str], list[TaskRow]] = defaultdict(list)
    for task in tasks:
        by_model[task.dataset, task.model].append(task)
    for dataset in dataset_rows(attempts, tasks):
        yield from _of_model(dataset, by_model[dataset.dataset, dataset.model])


def _of_model(row: DatasetRow, tasks: Sequence[TaskRow]) -> Iterator[Text]:
    name = f"{_name(row.model)} at {_name(row.dataset)}"
    yield Text(f"attempts of {name}: {counted(row.tasks, 'task')}; {denominators_told(row, tasks)}", "title")
    at_k = [pair for pair in zip(row.pass_at, row.pass_all, strict=True) if _is_short(pair[0].k, row)]
    if at_k:
        yield Text(f"{'k':>6}{'tasks':>8}  {'pass@k':24}{'tasks':>5}  {'without invalid ones':24}pass^k")
    lone = tasks[0] if len(tasks) == 1 else None
    for some, every in at_k:
        yield Text(f"{some.k:>6}{_cells(some, lone)}{_share(every.without_invalid.value)}")
    for caveat in caveats(row.pass_at[:1]) if lone is None else ():
        yield Text(f"        {caveat}")
    yield from (Text(f"        {line}") for line in _never_solved(tasks))
    if row.flagged or row.flags:
        kinds = ", ".join(f"{one_line(flag, _NAME_LETTERS)} {count}" for flag, count in row.flags.items())
        solved = sum(task.counts.solved for task in tasks)
        yield Text(
            f"        to look at: {row.flagged} of {solved} solved attempts are flagged; of all: {kinds}", "warn"
        )


def denominators_told(row: DatasetRow, tasks: Iterable[TaskRow]) -> str:
    """Return in words how many attempts there were and are counted."""
    parts = row.denominators
    solved = sum(task.counts.solved for task in tasks)
    invalid = parts.excluded - parts.errors
    kinds = [counted(parts.errors, "error"), f"{invalid} invalid"]
    excluded = f"{parts.excluded} excluded" + (f" ({', '.join(kinds)})" if parts.excluded else "")
    return f"{parts.planned} planned, {parts.ran} ran, {excluded}, {solved} solved"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def caveats(at_k: Iterable[AtK]) -> list[str]:
    """Return what keeps intervals from being what they say, each once."""
    said = (mean.caveat for at in at_k for mean in (at.with_failures, at.without_invalid))
    return list(dict.fromkeys(filter(None, said)))


def _is_short(k: int, row: DatasetRow) -> bool:
    """Whether a k is shown in a short table: powers of two, and the last."""
    return k & (k - 1) == 0 or k == row.pass_at[-1].k


def _cells(at: AtK, lone: TaskRow | None) -> str:
    """Return both brackets with their tasks; of a lone task the rate has Wilson's interval."""
    failures, valid = at.with_failures, at.without_invalid
    intervals: list[Interval | None] = [None, None]
    if lone is not None and at.k == 1:
        intervals = [one.wilson if one else None for one in (lone.with_failures, lone.without_invalid)]
    means = f"{_mean(failures, intervals[0]):24}", f"{_mean(valid, intervals[1]):24}"
    return f"{failures.tasks:>8}  {means[0]}{valid.tasks:>5}  {means[1]}"


def _mean(mean: Mean, interval: Interval | None = None) -> str:
    low, high = (interval.low, interval.high) if interval else (mean.low, mean.high)
    return _share(mean.value) + (f" ({low:.3f} to {high:.3f})" if low is not None and high is not None else "")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _never_solved(tasks: Iterable[TaskRow]) -> Iterator[str]:
    """Yield what so many attempts without a solution leave open, and of which tasks."""
    by_words: dict[str, list[str]] = defaultdict(list)
    for task in tasks:
        found = task.without_invalid
        if found is not None and found.solved == 0:
            by_words[found.still_allows].append(_name(task.task))
    for words, names in by_words.items():
        more = ", ..." if len(names) > MOST_EXAMPLES else ""
        yield f"{counted(len(names), 'task')} never solved, {words}: {', '.join(names[:MOST_EXAMPLES])}{more}"


def _name(text: str) -> str:
    return one_line(text, _NAME_LETTERS)
