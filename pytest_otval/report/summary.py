"""The summary of a run, as lines of text: the same at the end of a pytest run and for ``report``."""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from pytest_otval.report.matrix import matrix_of, short_lines
from pytest_otval.report.results import Row, stage_order, task_label
from pytest_otval.report.text import Style, Text, one_line

MOST_GROUPS, MOST_EXAMPLES = 20, 3
"""Of the list of failures."""

_LINE_LETTERS = 120
_UNSOLVED = "unsolved"
"""A column only of runs in which models made attempts, and the class that is counted in it."""
_COLUMNS = ("pass", _UNSOLVED, "fail", "error", "blocked", "n/a", "flaky", "known bad")

_UUID = r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?"
_TIME = rf"\b\d{{4}}-\d\d-\d\d(?:[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?)?|\b{_CLOCK}"
_HEX = r"\b0[xX][0-9a-fA-F]+\b|\b(?=[0-9a-fA-F]*\d)(?=[0-9]*[a-fA-F])[0-9a-fA-F]{7,}\b"
_PATH = r"(?<![\w.~/-])(?:~|\.{1,2})?/[\w.@+~-]+(?:/[\w.@+~-]*)*"
_NUMBER = r"\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?"
_VARYING = re.compile(
    f"(?P<uuid>{_UUID})|(?P<time>{_TIME})|(?P<hex>{_HEX})|(?P<path>{_PATH})|(?P<n>{_NUMBER})", re.ASCII
)


def normalised(text: str) -> str:
    """Return a line with what differs from one task to the next replaced: uuids, times, hex, paths, numbers."""
    return _VARYING.sub(lambda found: f"<{found.lastgroup}>", text)


@dataclass
class _Group:
    count: int = 0
    first: str = ""
    """What its first member says, not normalised."""
    examples: list[str] = field(default_factory=list)

    def add(self, example: str, said: str = "") -> None:
        self.count += 1
        self.first = self.first or said
        if len(self.examples) < MOST_EXAMPLES and example not in self.examples:
            self.examples.append(example)


@dataclass
class Summary:
    """What results add up to. Its size depends on how many different failures there are, and on rows that it keeps."""

    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Stage, then column."""
    seconds: dict[str, array[float]] = field(default_factory=lambda: defaultdict(lambda: array("d")))
    groups: dict[tuple[str, str, str], _Group] = field(default_factory=lambda: defaultdict(_Group))
    """Unexpected answers by stage, class and normalised last line."""
    unasked: dict[tuple[str, str, str], _Group] = field(default_factory=lambda: defaultdict(_Group))
    """n/a, by the same."""
    known: _Group = field(default_factory=_Group)
    only_here: _Group = field(default_factory=_Group)
    bases: set[str] = field(default_factory=set)
    attacked: list[Row] = field(default_factory=list)
    """Answers that tell of attacks."""
    made: list[Row] = field(default_factory=list)
    """Attempts of models."""
    reviewed: list[Row] = field(default_factory=list)
    """Answers that hold reviews."""

    def add(self, row: Row) -> None:
        """Count a result."""
        self.counts[row.stage][_column(row)] += 1
        self.seconds[row.stage].append(row.seconds)
        name, said = task_label(row), _said(row)
        if row.unexpected:
            self.groups[row.stage, row.reason, normalised(said)].add(name, said)
        elif row.verdict == "n/a":
            self.unasked[row.stage, row.reason, normalised(said)].add(name, said)
        elif row.expected_bad:
            self.known.add(name)
        if row.stricter:
            self.only_here.add(f"{name} ({one_line(row.stage)}: {one_line(row.stricter)})")
        if row.attacks:
            self.attacked.append(row)
        if row.made is not None:
            self.made.append(row)
        if row.reviews:
            self.reviewed.append(row)
        if row.image.startswith("bootstrap:"):
            self.bases.add(one_line(row.image))


def _column(row: Row) -> str:
    if row.expected_bad:
        return "known bad"
    if row.reason == _UNSOLVED:
        return _UNSOLVED
    return "flaky" if row.flaky else row.verdict


def _said(row: Row) -> str:
    said = f"passes, but is {row.known_bad}" if row.verdict == "pass" else row.last or row.headline
    return one_line(said, _LINE_LETTERS)


def summarise(rows: Iterable[Row]) -> Summary:
    """Add up results."""
    summary = Summary()
    for row in rows:
        summary.add(row)
    return summary


def summary_lines(summary: Summary, ledger: Path, planned: int | None = None) -> Iterator[Text]:
    """Yield the lines of a summary; ``ledger`` is where its results stand.

    ``planned``: how many attempts each model was to make at each task.
    """
    yield from _table(summary)
    if summary.made:
        # What no other run needs is not imported for it.
        from pytest_otval.report.attempt_summary import attempt_lines

        yield from attempt_lines(summary.made, planned)
    if summary.reviewed:
        from pytest_otval.report.judge_summary import judge_lines

        yield from judge_lines(summary.reviewed)
    yield from _grouped("to look at, by stage, class and last line:", summary.groups, "bad")
    yield from _grouped("not applicable:", summary.unasked, "warn")
    if summary.known.count:
        yield Text(f"known bad, as dataset.toml says: {_with_examples(summary.known)}")
    if summary.only_here.count:
        yield Text(f"fails only here, not by Harbor's rules: {_with_examples(summary.only_here)}", "warn")
    for line, paid in short_lines(matrix_of(summary.attacked)):
        yield Text(line, "bad" if paid else "good")
    if summary.bases:
        yield Text(f"base images stood in for by {', '.join(sorted(summary.bases))}")
    yield Text(f"ledger: {one_line(str(ledger))}")


def _table(summary: Summary) -> Iterator[Text]:
    width = max(10, *(len(one_line(stage)) + 1 for stage in summary.counts)) if summary.counts else 10
    columns = [name for name in _COLUMNS if summary.made or name != _UNSOLVED]
    yield Text(f"{'stage':{width}}" + "".join(f"{name:>10}" for name in columns) + f"{'median s':>10}", "title")
    for stage, row in sorted(summary.counts.items(), key=lambda item: stage_order(item[0])):
        numbers = "".join(f"{row[name]:>10}" for name in columns)
        bad = any(row[name] for name in ("fail", "error", "blocked", "flaky"))
        seconds = median(summary.seconds[stage])
        yield Text(f"{one_line(stage):{width}}{numbers}{seconds:>10.2f}", "bad" if bad else "good")


def _grouped(title: str, groups: dict[tuple[str, str, str], _Group], style: Style) -> Iterator[Text]:
    if not groups:
        return
    yield Text(title, "title")
    ordered = sorted(groups.items(), key=lambda item: (-item[1].count, item[0]))
    for (stage, reason, line), group in ordered[:MOST_GROUPS]:
        said = line if group.count > 1 else group.first
        yield Text(f"{group.count:>6} x {one_line(stage)}: {one_line(reason)}: {said}".removesuffix(": "), style)
        yield Text(f"{'':9}{_examples(group)}")
    if len(ordered) > MOST_GROUPS:
        left = sum(group.count for _, group in ordered[MOST_GROUPS:])
        yield Text(f"{left:>6} x of {len(ordered) - MOST_GROUPS} more kinds")


def _examples(group: _Group) -> str:
    more = ", ..." if group.count > len(group.examples) else ""
    return ", ".join(group.examples) + more


def _with_examples(group: _Group) -> str:
    return f"{group.count}: {_examples(group)}"
