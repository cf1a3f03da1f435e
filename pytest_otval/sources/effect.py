"""What patches did to verdicts: the tasks that they change, asked before and after."""

from __future__ import annotations

import html
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_otval.core import OtvalUsageError
from pytest_otval.report.results import Row, read_results
from pytest_otval.sources.files import SourceError

Became = Literal["fixed", "regressed", "still broken", "unchanged", "no answer"]
COLUMNS: tuple[Became, ...] = ("fixed", "regressed", "still broken", "unchanged", "no answer")
BEGIN, END = "<!-- effect -->", "<!-- /effect -->"
"""Between these lines of README.md stands the table."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What became of one item."""

    task: str
    stage: str
    became: Became
    before: str
    """Verdict and class."""
    after: str


def run_stages(dataset: Path, names: Iterable[str], stages: Sequence[str], out: Path, workers: str) -> None:
    """Ask stages of tasks of a prepared dataset, by a pytest of its own. Raises SourceError where it did not run."""
    # One line a task: a command line is not long enough for all tasks of a large dataset.
    arguments = dataset.parent / "arguments"
    arguments.write_text("".join(f"{dataset}/tasks/{name}\n" for name in names))
    words = [f"@{arguments}", "-m", " or ".join(stages), f"--otval-out={out}", "-q", "-p", "no:cacheprovider"]
    command = [sys.executable, "-P", "-m", "pytest_otval.glue.start", *words, "-n", workers]
    status = subprocess.run(command, check=False).returncode
    # Failures are what this is about; anything else is no answer about the patches.
    if status not in (0, 1, 8):
        raise SourceError(f"pytest ended with status {status}: see above, and {out}")


def effects(before: Path, after: Path) -> list[Effect]:
    """Return what became of each item between two runs. Raises OtvalUsageError where one has no results."""
    old = {(row.task, row.stage): row for row in read_results(before).rows if row.task}
    new = {(row.task, row.stage): row for row in read_results(after).rows if row.task}
    return [
        Effect(task, stage, _became(old.get((task, stage)), row), _shown(old.get((task, stage))), _shown(row))
        for (task, stage), row in new.items()
    ]


def _became(before: Row | None, after: Row) -> Became:
    if before is None or "error" in (before.verdict, after.verdict):
        return "no answer"
    good_before, good_after = before.verdict == "pass", after.verdict == "pass"
    if good_before and good_after:
        return "unchanged"
    if good_after:
        return "fixed"
    if good_before:
        return "regressed"
    # A question that did not apply, and still does not, is no fault.
    return "unchanged" if before.verdict == after.verdict == "n/a" else "still broken"


def _shown(row: Row | None) -> str:
    if row is None:
        return "not asked"
    return row.verdict if row.verdict == "pass" else f"{row.verdict} {row.reason}"


def table(found: Iterable[Effect], patches: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """Return rows of texts, a header first: by patch and stage. ``patches`` has those of each task."""
    counts: dict[tuple[str, str], Counter[Became]] = {}
    for one in found:
        for patch in patches.get(one.task, ()):
            counts.setdefault((patch, one.stage), Counter())[one.became] += 1
    rows = [(patch, stage, *(str(by[column]) for column in COLUMNS)) for (patch, stage), by in sorted(counts.items())]
    return [("patch", "stage", *COLUMNS), *rows]


def markdown(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    for number, row in enumerate(rows):
        yield f"| {' | '.join(row)} |"
        if number == 0:
            yield f"|{'---|' * len(row)}"


def page(name: str, rows: Sequence[Sequence[str]], found: Iterable[Effect]) -> str:
    """Return an html page with the table, and each item whose answer changed or is bad."""

    def line(cells: Iterable[str], kind: str) -> str:
        return "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in cells) + "</tr>"

    shown = [one for one in found if one.became != "unchanged"]
    items = [line((one.task, one.stage, one.became, one.before, one.after), "td") for one in shown]
    title = f"Effect of the patches of {html.escape(name)}"
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"><meta charset="utf-8"><title>{title}</title>',
            "<style>body{font:15px sans-serif;margin:2em}td,th{padding:.2em .8em;text-align:left}</style>",
            f"<h1>{title}</h1>",
            "<table>",
            line(rows[0], "th"),
            *(line(row, "td") for row in rows[1:]),
            "</table><h2>Items</h2><table>",
            line(("task", "stage", "became", "before", "after"), "th"),
            *items,
            "</table></html>",
            "",
        ]
    )


def write_readme(readme: Path, lines: Iterable[str]) -> None:
    """Put a table between the marks of a README. Raises OtvalUsageError where it has none."""
    text = readme.read_text() if readme.is_file() else ""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise OtvalUsageError(f"{readme} has no place for the table: write {BEGIN} and {END} into it")
    readme.write_text("\n".join([f"{head}{BEGIN}", *lines, f"{END}{tail}"]))
