"""What the index page knows of each result: columns, with each text once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_otval.report.attempts import is_attempt
from pytest_otval.report.matrix import matrix_of
from pytest_otval.report.results import Row
from pytest_otval.report.text import one_line

DETAILS_A_PAGE = 200
CELL_LETTERS = 60
"""Of another plugin's column: 20,000 different cells must not make a page that nobody can load."""

_TEXTS: Mapping[str, Callable[[Row], str]] = {
    "dataset": lambda row: row.dataset,
    "task": lambda row: row.task,
    "item": lambda row: row.item,
    "stage": lambda row: row.stage,
    "verdict": lambda row: row.verdict,
    "class": lambda row: row.reason,
    "image": lambda row: row.image,
    "attempts": lambda row: f"{row.attempts[0]}/{row.attempts[1]}" if row.attempts else "",
    "note": lambda row: _note(row),
}


def index_data(rows: Sequence[Row], run: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of the index page, in plain JSON types; texts are clean."""
    titles = sorted({title for row in rows for title, _ in row.columns})
    return {
        "run": _run_facts(run, facts),
        "count": len(rows),
        "detailsAPage": DETAILS_A_PAGE,
        "texts": {name: _column(map(value, rows)) for name, value in _TEXTS.items()},
        "more": [
            {"title": one_line(title, CELL_LETTERS), **_column(_cell(row, title) for row in rows)} for title in titles
        ],
        "attacks": matrix_of(rows).as_dict(),
        "attempts": any(map(is_attempt, rows)),
        "reviews": any(row.reviews for row in rows),
        "score": [row.score for row in rows],
        "seconds": [round(row.seconds, 2) for row in rows],
        "unexpected": [int(row.unexpected) for row in rows],
    }


def _column(values: Iterable[str]) -> dict[str, Any]:
    """Return a column as its different texts and, for each row, which of them it has."""
    numbers: dict[str, int] = {}
    index = [numbers.setdefault(value, len(numbers)) for value in values]
    return {"values": [one_line(value) for value in numbers], "index": index}


def _cell(row: Row, title: str) -> str:
    return one_line(dict(row.columns).get(title, ""), CELL_LETTERS)


def _note(row: Row) -> str:
    notes = []
    if row.known_bad:
        notes.append("known bad")
    if row.stricter:
        notes.append("not by Harbor's rules")
    if row.retries:
        notes.append(f"after {row.retries} retries")
    return ", ".join(notes)


def _run_facts(run: Path, facts: Mapping[str, Any]) -> list[list[str]]:
    machine, versions, settings = (facts.get(name) or {} for name in ("machine", "versions", "settings"))
    shown = {
        "run": run.absolute(),
        "command": " ".join(["pytest", *map(str, facts.get("args", ()))]) if facts else "",
        "cluster": facts.get("cluster", ""),
        "host": machine.get("host", ""),
        "flavour": facts.get("flavour", ""),
        "settings": ", ".join(f"{name} {value}" for name, value in settings.items()),
        "versions": ", ".join(f"{name} {value}" for name, value in versions.items()),
        "paths as seen from": Path.cwd(),
    }
    return [[name, one_line(str(value), 1000)] for name, value in shown.items() if value]
