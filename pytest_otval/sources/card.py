"""The card of a dataset that is published: what it is made of, what was asked of it, and what is wrong with it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_otval.core import printable
from pytest_otval.report.markdown import literal
from pytest_otval.report.matrix import matrix_of, table_lines
from pytest_otval.report.results import Results, Row, stage_order
from pytest_otval.sources.adapters.base import Refused
from pytest_otval.sources.manifest import refusals
from pytest_otval.sources.origin import Source
from pytest_otval.sources.published import Published
from pytest_otval.stages.repeat import interval

MOST_NAMED = 50
"""Tasks that the card names of each class."""


def card(
    name: str,
    rows: Sequence[Row],
    tasks: Sequence[Published],
    results: Sequence[Results],
    origin: Source,
    refused: Sequence[Refused],
    references: Mapping[str, Mapping[str, Any]],
) -> Iterator[str]:
    """Yield its lines, as Markdown with the head that the Hugging Face hub reads."""
    kept = [one for one in tasks if one.kept]
    archived = len(tasks) - len(kept)
    yield from _head(origin.licence)
    yield f"# {literal(name)}"
    yield ""
    yield f"{len(kept)} tasks in Harbor's format that were asked, in real containers, and answered as they should, and"
    yield f"{archived} that did not (`archived/`). `pytest` with pytest_otval takes this folder as it is."
    yield from _evidence(rows)
    yield from _failures(tasks)
    yield from _patches(tasks, refused)
    yield from _harbor(kept)
    yield from ("", "## Made with", "")
    for one in results:
        versions = ", ".join(f"{tool} {number}" for tool, number in sorted(one.facts.get("versions", {}).items()))
        flavour = literal(str(one.facts.get("flavour", "")))
        yield f"- run {literal(one.run.name)}: {literal(versions)}, flavour {flavour}"
    counted = ", ".join(f"{len(found)} {kind}" for kind, found in references.items())
    yield f"- {counted}, by digest and file name in `evidence/references.json`"
    yield from _licences(origin, tasks)


def _head(licence: str) -> Iterator[str]:
    yield from ("---", f"license: {json.dumps(printable(licence or 'unknown').lower())}")
    yield "tags: [reinforcement-learning, harbor]"
    # So that the hub shows, and its library loads, each table by its name.
    yield "configs:"
    yield "- {config_name: kept, data_files: data/kept.parquet, default: true}"
    yield "- {config_name: archived, data_files: archived/archived.parquet}"
    yield "- {config_name: verdicts, data_files: evidence/verdicts.parquet}"
    yield from ("---", "")


def _evidence(rows: Sequence[Row]) -> Iterator[str]:
    yield from ("", "## Evidence", "", "| stage | asked | pass | 95 % interval | n/a |", "|---|---|---|---|---|")
    for stage, by in _by_stage(rows):
        asked, passed = by.total() - by["n/a"], by["pass"]
        low, high = interval(passed, asked) if asked else (0.0, 1.0)
        yield f"| {literal(stage)} | {asked} | {passed} | {low:.1%} to {high:.1%} | {by['n/a']} |"
    attacked = [dict(row.attacks) for row in rows if row.attacks]
    if attacked:
        paid = sum("paid" in cells.values() for cells in attacked)
        yield from ("", f"Attacks that solve nothing were paid on {paid} of {len(attacked)} tasks.", "")
        yield from table_lines(matrix_of(rows))
    levels = Counter(row.isolation for row in rows if row.isolation)
    if levels:
        yield from ("", "Isolation: " + ", ".join(f"{literal(level)} {count}" for level, count in levels.most_common()))


def _by_stage(rows: Iterable[Row]) -> list[tuple[str, Counter[str]]]:
    found: dict[str, Counter[str]] = {}
    for row in rows:
        if row.task and row.verdict != "error":
            found.setdefault(row.stage, Counter())[row.verdict] += 1
    return sorted(found.items(), key=lambda item: stage_order(item[0]))


def _failures(tasks: Sequence[Published]) -> Iterator[str]:
    yield from ("", "## Known failures", "")
    bad: dict[str, list[str]] = {}
    for one in tasks:
        if not one.kept:
            bad.setdefault(one.fate.category, []).append(one.name)
    for category, names in sorted(bad.items(), key=lambda item: -len(item[1])):
        yield f"- {literal(category)}: {_named(names)}"
    if not bad:
        yield "None."


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(map(literal, names[:MOST_NAMED]))}{more}"


def _patches(tasks: Sequence[Published], refused: Sequence[Refused]) -> Iterator[str]:
    """Yield which patches changed how many of these tasks, and which records of the source gave none."""
    applied = Counter(patch for one in tasks for patch in one.patches)
    if applied:
        yield from ("", "## Patches", "", "| patch | tasks |", "|---|---|")
        yield from (f"| {literal(patch)} | {count} |" for patch, count in sorted(applied.items()))
    if refused:
        reasons = Counter(one.reason for one in refused)
        said = ", ".join(f"{literal(reason)} {count}" for reason, count in sorted(reasons.items()))
        yield from ("", f"Records of the source that gave no task: {said} (`evidence/provenance.jsonl`).")


def _harbor(kept: Sequence[Published]) -> Iterator[str]:
    """Yield which tasks Harbor's manifest lacks."""
    lines = refusals(kept)
    if lines:
        yield from ("", "## Not in Harbor's manifest", "", *(f"- {literal(line)}" for line in lines[:MOST_NAMED]))
        if len(lines) > MOST_NAMED:
            yield f"- and {len(lines) - MOST_NAMED} more"


def _licences(origin: Source, tasks: Sequence[Published]) -> Iterator[str]:
    yield from ("", "## Origin and licence", "")
    facts = origin.model_dump(exclude={"licence"}, exclude_defaults=True)
    yield f"- from {', '.join(literal(f'{key} {value}') for key, value in facts.items())}"
    yield f"- {literal(origin.licence or 'Its licence is not known: ask where the tasks come from.')}"
    own = Counter(one.licence for one in tasks if one.licence)
    if own:
        said = ", ".join(f"{literal(licence)} {count}" for licence, count in own.most_common())
        yield f"- licences that tasks name themselves: {said}; {len(tasks) - own.total()} name none (column `licence`)"
