"""Attacks against isolation levels: what became of each, over the tasks of one or more runs. All reports ask here."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_otval.core import LEVELS
from pytest_otval.report.markdown import literal, table
from pytest_otval.report.results import Row, task_label
from pytest_otval.report.text import one_line

CELLS = ("paid", "accepted", "tampered", "stopped", "applied", "not-applied")
"""What may become of an attack, the most telling first; see docs/adversary.md."""
_COLUMNS = (*LEVELS, "separate")
"""Their order; others come behind them."""
_MOST_NAMED = 8
_LETTERS = 60


@dataclass
class Matrix:
    """Counts of tasks, by attack, level and cell. A task counts once at each level, by its latest answer."""

    counts: dict[str, dict[str, Counter[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Counter))
    )
    """By attack, in the order in which they were tried."""
    payers: dict[str, dict[str, list[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    """The tasks that pay, by level and attack."""

    @property
    def levels(self) -> list[str]:
        """The levels there are, in their order."""
        found = {level for by_level in self.counts.values() for level in by_level}
        return sorted(found, key=lambda level: (_COLUMNS.index(level) if level in _COLUMNS else len(_COLUMNS), level))

    def of_level(self, level: str) -> Counter[str]:
        """Return how many cells of each kind a level has."""
        total: Counter[str] = Counter()
        for by_level in self.counts.values():
            if level in by_level:
                total += by_level[level]
        return total

    def as_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types; texts are clean."""
        attacks = {
            one_line(attack, _LETTERS): {one_line(level): dict(_ordered(cells)) for level, cells in by_level.items()}
            for attack, by_level in self.counts.items()
        }
        return {"levels": [one_line(level) for level in self.levels], "attacks": attacks}


def matrix_of(rows: Iterable[Row]) -> Matrix:
    """Add up what attacks came to."""
    latest: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = row.id, row.isolation
        if row.attacks and (key not in latest or latest[key].time <= row.time):
            latest[key] = row
    matrix = Matrix()
    for row in latest.values():
        for attack, cell in row.attacks:
            matrix.counts[attack][row.isolation][cell] += 1
            if cell == "paid":
                matrix.payers[row.isolation][attack].append(task_label(row))
    return matrix


def _ordered(cells: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    known = [cell for cell in CELLS if cells.get(cell)]
    yield from ((cell, cells[cell]) for cell in known)
    yield from sorted((one_line(cell, _LETTERS), count) for cell, count in cells.items() if cell not in CELLS)


def told(cells: Mapping[str, int]) -> str:
    """Return counts as a person reads them; of one task the word alone."""
    found = list(_ordered(cells))
    if sum(count for _, count in found) == 1:
        return found[0][0]
    return ", ".join(f"{count} {cell}" for cell, count in found)


def short_lines(matrix: Matrix) -> Iterator[tuple[str, bool]]:
    """Yield a line for each level, with the attacks that were paid, and whether any was."""
    for level in matrix.levels:
        counts = ", ".join(f"{count} {cell}" for cell, count in _ordered(matrix.of_level(level)))
        paid = matrix.payers.get(level, {})
        by_count = sorted(paid, key=lambda attack: -len(paid[attack]))
        named = [
            one_line(name, _LETTERS) + (f" x {len(paid[name])}" if len(paid[name]) > 1 else "") for name in by_count
        ]
        more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        names = f": paid {', '.join(named[:_MOST_NAMED])}{more}" if named else ""
        yield f"attacks at {one_line(level)}: {counts}{names}", bool(named)


def table_lines(matrix: Matrix) -> Iterator[str]:
    """Yield the whole matrix as a Markdown table: attacks as rows, levels as columns."""
    levels = matrix.levels
    rows = [("attack", *map(_cell, levels))]
    for attack, by_level in matrix.counts.items():
        cells = (told(by_level[level]) if level in by_level else "" for level in levels)
        rows.append((_cell(attack), *map(literal, cells)))
    rows.append(("paid of those that ran", *(_share(matrix.of_level(level)) for level in levels)))
    yield from table(rows)


def _share(cells: Mapping[str, int]) -> str:
    ran = sum(cells.values()) - cells.get("not-applied", 0)
    return f"{cells.get('paid', 0) + cells.get('accepted', 0)} of {ran}"


def _cell(text: str) -> str:
    return literal(one_line(text, _LETTERS))
