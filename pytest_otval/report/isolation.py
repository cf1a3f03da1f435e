"""``python -m pytest_otval isolation RUN``: the strongest level at which each task works, as ``auto`` found it."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_otval.core import LEVELS, OtvalUsageError
from pytest_otval.report.command import results_of
from pytest_otval.report.results import Results, split_id
from pytest_otval.report.text import one_line
from pytest_otval.runtimes.named import NotNamedError, add_to_dataset
from pytest_otval.task.dataset import DATASET_TOML, load_dataset

STRONGEST_FIRST: tuple[str, ...] = LEVELS[::-1]
SEPARATE, TOGETHER = "separate", "together"
_OTHERS = {
    SEPARATE: "with a separate verifier",
    TOGETHER: "with services that live on into the verifier's phase, in one container",
    "": "work at no level",
}


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of one task."""

    dataset: str
    task: str
    level: str
    """The strongest at which oracle and noop pass, ``separate`` or ``together``; empty for none."""
    tried: Mapping[str, str]
    """Reason class by level, the strongest first."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("ran", metavar="RUN", help="run folder, or `latest`, of pytest with --otval-isolation auto")
    parser.add_argument("--write", metavar="DATASET", type=Path, help="write them into the dataset.toml of this folder")


def run_isolation(arguments: argparse.Namespace) -> int:
    """Carry out the command and return its exit status. Raises OtvalUsageError."""
    found = list(levels_found(results_of(arguments.ran)))
    if not found:
        raise OtvalUsageError(f"{arguments.ran} has no answer of oracle at --otval-isolation auto")
    written = _write(arguments.write, found, arguments.ran) if arguments.write is not None else ""
    print("\n".join(filter(None, (*table_lines(found), written))))
    return 0


def levels_found(results: Results) -> Iterator[Found]:
    """Yield what the oracle stage found, by task."""
    for line in results.lines():
        tried = line.get("levels") or {}
        if line["stage"] == "oracle" and tried:
            dataset, task, _ = split_id(line["id"])
            yield Found(dataset, task, _level(line, tried), tried)


def _level(line: Mapping[str, Any], tried: Mapping[str, str]) -> str:
    if line["verdict"] != "pass" or line["isolation"] == SEPARATE:
        return SEPARATE if line["verdict"] == "pass" else ""
    return next((level for level, reason in tried.items() if reason == "expected"), TOGETHER)


def table_lines(found: list[Found]) -> Iterator[str]:
    """Yield how many tasks work at each level, and those that do not at the strongest."""
    counts = Counter(one.level for one in found)
    works = 0
    yield "level      strongest for   works at   solutions lost"
    for level in STRONGEST_FIRST:
        works += counts[level]
        lost = sum(count for name, count in counts.items() if name in STRONGEST_FIRST) - works
        yield f"{level:<9}{counts[level]:>15}{works:>11}{lost:>17}"
    for name, words in _OTHERS.items():
        if counts[name]:
            yield f"{counts[name]} {words}"
    for one in found:
        if one.level not in (STRONGEST_FIRST[0], SEPARATE, TOGETHER):
            tried = ", ".join(f"{level} {reason}" for level, reason in one.tried.items())
            yield f"  {one_line(one.task)}: {one.level or 'no level'} ({one_line(tried)})"


def _write(folder: Path, found: list[Found], run: str) -> str:
    dataset = load_dataset(folder)
    file, settings = folder / DATASET_TOML, dataset.settings
    if not file.is_file():
        raise OtvalUsageError(f"{folder} has no {DATASET_TOML}: write one with [otval], then try again")
    own = [one for one in found if one.dataset == dataset.name]
    if not own:
        others = ", ".join(sorted({one.dataset for one in found}))
        raise OtvalUsageError(f"{run} has no task of {dataset.name}, it has those of {others}: name that folder")
    levels = {
        one.task: one.level
        for one in own
        if one.level in STRONGEST_FIRST and one.level != settings.levels.get(one.task, settings.isolation)
    }
    try:
        add_to_dataset(file, "levels", levels)
    except NotNamedError as error:
        raise OtvalUsageError(str(error)) from None
    return f"{file}: {len(levels)} levels written into [otval.levels]"
