"""What changed between two runs, by cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_otval.report.results import Row
from pytest_otval.report.text import Text, one_line

MOST_SHOWN = 20
"""Of each cause."""

CAUSES: Mapping[str, str] = {
    "task": "the task changed",
    "image": "the image changed, the task did not",
    "settings": "the settings changed, task and image did not",
    "nothing": "nothing changed: flaky, or the machine",
    "new": "new",
    "gone": "gone",
}
"""In the order in which they are looked for and shown: a new task explains a new image."""


@dataclass(frozen=True, slots=True)
class Change:
    """An item whose verdict is another, or that only one run has."""

    id: str
    cause: str
    """A key of ``CAUSES``."""
    before: Row | None
    after: Row | None

    def as_dict(self) -> dict[str, Any]:
        """Return the change in plain JSON types."""
        return {"id": self.id, "cause": self.cause, "before": _brief(self.before), "after": _brief(self.after)}


def compare(before: Iterable[Row], after: Iterable[Row]) -> list[Change]:
    """Return the items whose verdict differs, in the order of ``CAUSES``, then of the rows."""
    old = {row.id: row for row in before}
    changes = []
    for row in after:
        known = old.pop(row.id, None)
        if known is None or known.verdict != row.verdict:
            changes.append(Change(row.id, _cause(known, row), known, row))
    changes += [Change(row.id, "gone", row, None) for row in old.values()]
    order = list(CAUSES)
    return sorted(changes, key=lambda change: order.index(change.cause))


def _cause(before: Row | None, after: Row) -> str:
    if before is None:
        return "new"
    if _differ(before.task_digest, after.task_digest):
        return "task"
    if _differ(before.image_key, after.image_key) or _differ(before.image_content, after.image_content):
        return "image"
    settings = [(row.settings_digest, row.flavour, row.network) for row in (before, after)]
    return "settings" if settings[0] != settings[1] else "nothing"


def _differ(before: str, after: str) -> bool:
    """Whether both are known and differ: an answer that came before any image was made says nothing about images."""
    return bool(before and after) and before != after


def change_lines(changes: Iterable[Change]) -> Iterator[Text]:
    """Yield the changes as lines, by cause."""
    by_cause: dict[str, list[Change]] = {cause: [] for cause in CAUSES}
    for change in changes:
        by_cause[change.cause].append(change)
    if not any(by_cause.values()):
        yield Text("no verdict changed", "good")
    for cause, group in by_cause.items():
        if not group:
            continue
        yield Text(f"{CAUSES[cause]}: {len(group)}", "title")
        for change in group[:MOST_SHOWN]:
            yield Text(f"  {one_line(change.id)}: {_from_to(change)}", _style(change))
        if len(group) > MOST_SHOWN:
            yield Text(f"  and {len(group) - MOST_SHOWN} more; --json lists all")


def _from_to(change: Change) -> str:
    answers = [_answer(row) for row in (change.before, change.after) if row is not None]
    return " -> ".join(answers)


def _answer(row: Row) -> str:
    return one_line(row.verdict if row.verdict == "pass" else f"{row.verdict} {row.reason}")


def _style(change: Change) -> Any:
    if change.after is None or change.cause == "new":
        return ""
    return "bad" if change.after.unexpected else "good"


def _brief(row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {"verdict": row.verdict, "class": row.reason, "headline": row.headline, "score": row.score}
