"""How much more or less often models solved tasks in a run than in another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pytest_otval.llm.bootstrap import Mean
from pytest_otval.llm.comparison import Comparison, compared
from pytest_otval.llm.estimates import Interval
from pytest_otval.llm.tables import TaskRow, task_rows
from pytest_otval.llm.worth import Difference
from pytest_otval.report.attempt_summary import counted
from pytest_otval.report.attempts import brief_attempts
from pytest_otval.report.results import Row
from pytest_otval.report.text import Style, Text, one_line

MOST_SHOWN = 5
"""Tasks that changed, of each model."""

_NAME_LETTERS = 40


@dataclass(frozen=True, slots=True)
class RateChange:
    """A model at a dataset in two runs, over the tasks at which both have valid attempts."""

    dataset: str
    model: str
    found: Comparison
    """Of the later run against the earlier one."""
    other_files: int
    """Tasks of these whose files differ between the runs."""

    @property
    def moved(self) -> list[tuple[str, Difference]]:
        """The tasks whose interval leaves out 0, those that changed most first."""
        changed = [
            (key[1], one) for key, one in self.found.tasks.items() if not one.interval.low <= 0 <= one.interval.high
        ]
        return sorted(changed, key=lambda pair: -abs(pair[1].value))

    def as_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return {
            "dataset": self.dataset,
            "model": self.model,
            "tasks": len(self.found.tasks),
            "other_files": self.other_files,
            "pass_at": [
                {"k": at.k, "before": at.second, "after": at.first, "change": asdict(at.difference)}
                for at in self.found.pass_at
            ],
            "moved": [{"task": task, **asdict(one)} for task, one in self.moved],
        }


def rate_changes(before: Sequence[Row], after: Sequence[Row]) -> list[RateChange]:
    """Return the change of each model at each dataset that made attempts in both runs."""
    old, new = _by_model(before), _by_model(after)
    digests = {(row.dataset, row.task): row.task_digest for row in before}
    differ = {(row.dataset, row.task) for row in after if row.task_digest != digests.get((row.dataset, row.task))}
    changes = []
    for dataset, model in sorted(old.keys() & new.keys()):
        found = compared(new[dataset, model], old[dataset, model])
        changes.append(RateChange(dataset, model, found, len(differ & found.tasks.keys())))
    return changes


def _by_model(rows: Iterable[Row]) -> dict[tuple[str, str], list[TaskRow]]:
    groups: dict[tuple[str, str], list[TaskRow]] = {}
    for task in task_rows(brief_attempts(rows)):
        groups.setdefault((task.dataset, task.model), []).append(task)
    return groups


def rate_lines(changes: Iterable[RateChange]) -> Iterator[Text]:
    """Yield the changes as lines."""
    for change in changes:
        name = f"{_name(change.model)} at {_name(change.dataset)}"
        tasks = counted(len(change.found.tasks), "task")
        yield Text(f"attempts of {name}: {tasks} of both runs, without invalid attempts", "title")
        if not change.found.tasks:
            continue
        yield Text(f"{'k':>6}{'tasks':>8}{'before':>9}{'after':>9}  change of pass@k")
        for at in change.found.pass_at:
            interval = change.found.interval if at.k == 1 else _interval(at.difference)
            numbers = f"{at.k:>6}{at.difference.tasks:>8}{_share(at.second):>9}{_share(at.first):>9}"
            yield Text(f"{numbers}  {_change(at.difference.value, interval)}", _style(interval))
        if (caveat := change.found.mean.caveat) and len(change.found.tasks) > 1:
            yield Text(f"        {caveat}")
        if change.other_files:
            yield Text(f"        {counted(change.other_files, 'task')} of these with other files than before", "warn")
        if len(change.found.tasks) > 1:
            yield from _moved(change)


def _moved(change: RateChange) -> Iterator[Text]:
    moved = change.moved
    if moved:
        chance = f"by chance about 1 of 20 of {len(change.found.tasks)}"
        yield Text(f"        {counted(len(moved), 'task')} changed by an interval without 0 ({chance}):")
    for task, one in moved[:MOST_SHOWN]:
        ends = f"{one.interval.low:+.3f} to {one.interval.high:+.3f}"
        yield Text(f"          {_name(task)}: {one.value:+.3f} ({ends})", "good" if one.value > 0 else "bad")
    if len(moved) > MOST_SHOWN:
        yield Text(f"          and {len(moved) - MOST_SHOWN} more; --json lists all")


def _interval(mean: Mean) -> Interval | None:
    return None if mean.low is None or mean.high is None else Interval(mean.low, mean.high)


def _change(value: float | None, interval: Interval | None) -> str:
    if value is None:
        return "-"
    return f"{value:+.3f}" + (f" ({interval.low:+.3f} to {interval.high:+.3f})" if interval else "")


def _style(interval: Interval | None) -> Style:
    if interval is None or interval.low <= 0 <= interval.high:
        return ""
    return "good" if interval.low > 0 else "bad"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _name(text: str) -> str:
    return one_line(text, _NAME_LETTERS)
