"""What becomes of each task of a dataset when it is published, by the answers about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pytest_otval.report.results import Row
from pytest_otval.report.text import one_line


@dataclass(frozen=True, slots=True)
class Fate:
    """Whether a task is kept, and why not."""

    category: str = ""
    """Reason class; empty for one that is kept."""
    reason: str = ""


def fates(rows: Iterable[Row]) -> dict[str, Fate]:
    """Return what becomes of each task that was asked about: it is kept where every answer is a pass or n/a.

    Errors of the machine are no answer. A task with an item that has no other is neither: it is left out.
    """
    found: dict[str, Fate] = {}
    answered: set[tuple[str, str]] = set()
    errors: set[tuple[str, str]] = set()
    for row in rows:
        if not row.task:
            continue
        (errors if row.verdict == "error" else answered).add((row.task, row.item))
        if row.verdict not in ("pass", "n/a", "error") and not found.get(row.task, Fate()).category:
            said = one_line(f"{row.stage}: {row.headline}")
            found[row.task] = Fate(row.reason, f"{said} ({one_line(row.known_bad)})" if row.known_bad else said)
        else:
            found.setdefault(row.task, Fate())
    unknown = {task for task, _ in errors - answered}
    return {task: fate for task, fate in found.items() if task not in unknown}
