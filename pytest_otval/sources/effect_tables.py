"""What patches did, as tables: counts by patch and stage, and attacks that are paid before and now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pytest_otval.core import OtvalUsageError
from pytest_otval.report.results import stage_order
from pytest_otval.report.text import one_line
from pytest_otval.sources.effect import ADVERSARY, COLUMNS, PAID, Became, Effect

Table = list[tuple[str, ...]]
"""Rows of texts, a header first."""
BEGIN, END = "<!-- effect -->", "<!-- /effect -->"
"""Between these lines of README.md stand the tables."""


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


def markdown(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    for number, row in enumerate(rows):
        yield f"| {' | '.join(one_line(cell) for cell in row)} |"
        if number == 0:
            yield f"|{'---|' * len(row)}"


def readme_parts(readme: Path) -> tuple[str, str]:
    """Return what stands before and behind the marks of a README. Raises OtvalUsageError where it has none."""
    text = readme.read_text() if readme.is_file() else ""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise OtvalUsageError(f"{readme} has no place for the table: write {BEGIN} and {END} into it")
    return head, tail


def write_readme(readme: Path, lines: Iterable[str]) -> None:
    """Put lines between the marks of a README. Raises OtvalUsageError where it has none."""
    head, tail = readme_parts(readme)
    readme.write_text("\n".join([f"{head}{BEGIN}", *lines, f"{END}{tail}"]))
