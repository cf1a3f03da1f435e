"""What patches did, as tables: counts by patch and stage, and attacks that are paid before and now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from pytest_otval.report.markdown import literal
from pytest_otval.report.markdown import table as markdown_table
from pytest_otval.report.results import stage_order
from pytest_otval.sources.effect import ADVERSARY, COLUMNS, PAID, Became, Effect

Table = list[tuple[str, ...]]
"""Rows of texts, a header first."""
MARK = "effect"
"""Names the marks between which the tables stand in README.md."""


def table(found: Iterable[Effect]) -> Table:
    """Return counts by patch and stage. Tasks that several patches change have rows that name all of them."""
    counts: dict[tuple[str, str], Counter[Became]] = {}
    for one in found:
        counts.setdefault((_named(one), one.stage), Counter())[one.became] += 1
    ordered = sorted(counts.items(), key=lambda item: (item[0][0], stage_order(item[0][1])))
    rows = [(patches, stage, *(str(by[column]) for column in COLUMNS)) for (patches, stage), by in ordered]
    return [("patch", "stage", *COLUMNS), *rows]


def attack_table(found: Iterable[Effect]) -> Table:
    """Return on how many tasks each attack is paid before and now, by patch; empty where none is."""
    before, now = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for one in found:
        if one.stage != ADVERSARY or one.before is None or one.became == "no answer":
            continue
        for counts, answer in ((before, one.before), (now, one.after)):
            paid = [fault.removeprefix(PAID) for fault in answer.faults if fault.startswith(PAID)]
            counts.update((_named(one), attack) for attack in paid)
    rows = [(*key, str(before[key]), str(now[key])) for key in sorted({*before, *now})]
    return [("patch", "attack", "paid before", "paid now"), *rows] if rows else []


def joint(found: Iterable[Effect]) -> bool:
    """Whether some items were asked with several patches at once."""
    return any(len(one.patches) > 1 for one in found)


def _named(one: Effect) -> str:
    return " + ".join(one.patches)


def markdown(rows: Table) -> Iterator[str]:
    """Yield the lines of a table."""
    return markdown_table([literal(cell) for cell in row] for row in rows)
