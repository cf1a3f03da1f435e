"""What the pages of models are made of, in plain JSON types: tables and plots. Texts are clean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_otval.llm.bootstrap import Mean
from pytest_otval.llm.estimates import Interval
from pytest_otval.llm.worth import CostToSolve
from pytest_otval.report.text import one_line

Block = dict[str, Any]
Cell = str | dict[str, Any]
"""Text, or ``text`` with ``sort`` (what orders it) or ``href``."""

NAME_LETTERS = 120


def words(title: str, lines: Iterable[str]) -> Block:
    """Return paragraphs."""
    return {"kind": "words", "title": title, "lines": list(lines)}


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[Cell]], note: str = "") -> Block:
    """Return a table that can be sorted; ``note`` says what it cannot tell."""
    return {"kind": "table", "title": title, "head": list(head), "rows": [list(row) for row in rows], "note": note}


def bars(title: str, legend: Sequence[str], rows: Mapping[str, Sequence[int]], note: str = "") -> Block:
    """Return stacked bars, a row each: how many of each thing of the legend."""
    shown = [[name_of(name), list(parts)] for name, parts in rows.items()]
    return {"kind": "bars", "title": title, "legend": list(legend), "rows": shown, "note": note}


def curves(title: str, ks: Sequence[int], series: Mapping[str, Sequence[Mean]], note: str = "") -> Block:
    """Return lines of shares over k, with their intervals as bands."""
    shown = [
        {"name": name, "points": [[mean.value, mean.low, mean.high] for mean in means]}
        for name, means in series.items()
    ]
    return {"kind": "curves", "title": title, "ks": list(ks), "series": shown, "note": note}


def ranges(title: str, rows: Iterable[tuple[str, float, Interval]], note: str = "") -> Block:
    """Return shares with their intervals, a row each."""
    shown = [[name_of(name), value, interval.low, interval.high] for name, value, interval in rows]
    return {"kind": "ranges", "title": title, "rows": shown, "note": note}


def name_of(text: str) -> str:
    """Return a name that a task or an endpoint gave."""
    return one_line(text, NAME_LETTERS)


def link(text: str, **state: str) -> Cell:
    """Return a cell that leads to another view of the page."""
    return {"text": name_of(text), "state": {name: one_line(value) for name, value in state.items()}}


def number(value: float | None, digits: int = 0) -> Cell:
    """Return a number, or a dash where there is none."""
    return {"text": "-" if value is None else f"{value:,.{digits}f}", "sort": value}


def share(value: float | None, interval: Interval | None = None) -> Cell:
    """Return a share with its interval."""
    ends = f" ({interval.low:.3f} to {interval.high:.3f})" if interval else ""
    return {"text": "-" if value is None else f"{value:.3f}{ends}", "sort": value}


def mean_share(mean: Mean) -> Cell:
    """Return a mean of shares with its interval, if it has one."""
    known = mean.low is not None and mean.high is not None
    return share(mean.value, Interval(mean.low or 0.0, mean.high or 0.0) if known else None)


def cost(value: CostToSolve | None, digits: int = 0) -> Cell:
    """Return what one solution costs; of none that was found the least."""
    if value is None:
        return number(None)
    if value.value is None:
        return {"text": f"at least {value.low:,.{digits}f}", "sort": value.low}
    high = "" if value.high is None else f" to {value.high:,.{digits}f}"
    return {"text": f"{value.value:,.{digits}f} ({value.low:,.{digits}f}{high})", "sort": value.value}
