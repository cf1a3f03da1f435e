"""Writes the pages of reviews: an overview, and files of tasks by the hundred, each with the files that are quoted.

Those come from the task's folder, if it is still there as it was reviewed.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from pytest_otval.core import OtvalUsageError
from pytest_otval.judge.model import Evidence, Review
from pytest_otval.report.attempts import is_attempt
from pytest_otval.report.html.reviews import review_blocks, reviews_overview
from pytest_otval.report.html.scripts import script
from pytest_otval.report.results import Results, split_id
from pytest_otval.report.text import clean, one_line
from pytest_otval.task.digest import task_digest
from pytest_otval.task.index import TASK_TOML
from pytest_otval.task.reading import NotReadableError, is_regular, read_start, target_within

TASKS_A_FILE = 100
MOST_BYTES = 128 * 1024
"""Of a file that is quoted."""
MOST_FILES = 20
"""Of a task."""
_STEP = "step "


def write_reviews(results: Results, folder: Path) -> dict[str, Any]:
    """Write the data of a run's reviews into a folder, and return those of the overview.

    Raises OSError, OtvalUsageError.
    """
    attempts = frozenset(row.id for row in results.rows if is_attempt(row))
    reviewed = results.where([bool(row.reviews) for row in results.rows])
    lines: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row, line in zip(reviewed.rows, reviewed.lines(), strict=True):
        lines[row.dataset, row.task].append(line)
    keys = sorted(lines)
    for start in range(0, len(keys), TASKS_A_FILE):
        pages = [_page(key, lines[key], results, attempts) for key in keys[start : start + TASKS_A_FILE]]
        number = start // TASKS_A_FILE
        script(folder / f"{number}.js", "reviews", number, pages)
    return {
        "title": "reviews",
        "pages": "reviews",
        "blocks": reviews_overview(reviewed.rows),
        "sets": [],
        "tasks": [[one_line(name) for name in key] for key in keys],
        "tasksAFile": TASKS_A_FILE,
    }


def _page(
    key: tuple[str, str], lines: Iterable[Mapping[str, Any]], results: Results, attempts: frozenset[str]
) -> dict[str, Any]:
    """Return the page of a task."""
    blocks: list[Any] = []
    sources: dict[str, str] = {}
    for line in lines:
        folder = _folder(line, results.facts)

        def lead(review: Review, evidence: Evidence, folder: Path | None = folder) -> Mapping[str, Any]:
            if evidence.document.startswith(_STEP) and review.subject in attempts:
                return {"href": _talk(review.subject, evidence.document)}
            name = one_line(evidence.document)
            if name not in sources and len(sources) < MOST_FILES and (text := _text(folder, evidence.document)):
                sources[name] = text
            at = {} if evidence.line is None else {"line": str(evidence.line)}
            about = {"dataset": one_line(key[0]), "task": one_line(key[1]), "file": name}
            return {"state": {**about, **at}} if name in sources else {}

        for review in _reviews(line, results.run):
            blocks += review_blocks(review, lead)
    return {"blocks": blocks, "files": sources}


def _reviews(line: Mapping[str, Any], run: Path) -> list[Review]:
    try:
        return list(map(Review.from_dict, line["judge"]))
    except ValueError as error:
        why = one_line(str(error), 200)
        raise OtvalUsageError(f"{run}: no version of ours wrote the review of {line['id']!r}: {why}") from None


def _talk(subject: str, document: str) -> str:
    dataset, task, item = (one_line(part) for part in split_id(subject))
    step = one_line(document.removeprefix(_STEP))
    return f"models.html#{urlencode({'dataset': dataset, 'task': task, 'item': item, 'step': step})}"


def _folder(line: Mapping[str, Any], facts: Mapping[str, Any]) -> Path | None:
    """Return the folder of a task, if it holds what was reviewed."""
    named = str(line.get("argument") or line["id"]).rpartition("::")[0]
    places = [str(facts.get("cwd") or "."), os.environ.get("OT_WORKSPACE") or "."]
    for file in (Path(place) / named for place in places):
        if file.name == TASK_TOML and is_regular(file):
            return file.parent if task_digest(file.parent) == line["task_digest"] else None
    return None


def _text(folder: Path | None, document: str) -> str:
    """Return what a file of a task says; empty for what is none, or lies outside."""
    if folder is None or "\0" in document or target_within(folder / document, folder) is None:
        return ""
    try:
        return clean(read_start(folder / document, MOST_BYTES).decode(errors="replace"))
    except (NotReadableError, OSError):
        return ""
