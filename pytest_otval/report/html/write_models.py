"""Writes the pages of models: an overview, a file for each model at each dataset, and files of tasks and trajectories.

Files are few: tasks come by the hundred, trajectories as many as make a megabyte.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pytest_otval.core import node_id
from pytest_otval.llm.attempts import Attempt
from pytest_otval.llm.comparison import discrimination
from pytest_otval.llm.tables import TaskRow, dataset_rows, task_rows
from pytest_otval.report.attempts import attempt_lines_of
from pytest_otval.report.html.models import model_blocks, overview
from pytest_otval.report.html.scripts import script, script_json
from pytest_otval.report.html.talks import talks
from pytest_otval.report.html.tasks import Place, task_page
from pytest_otval.report.results import Results, split_id
from pytest_otval.report.text import one_line

TASKS_A_FILE = 200
TRAJECTORY_FILE_BYTES = 1_000_000
MOST_TRAJECTORIES = 2000
"""Those with flags come first. Of the others a page says where their evidence is."""


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class _Shown:
    attempt: Attempt
    item: str
    place: str


def write_models(results: Results, folder: Path, planned: int | None) -> dict[str, Any]:
    """Write the data of a run's attempts into folders of a folder, and return those of the overview.

    ``planned``: attempts of each model at each task.

    Raises OSError, OtvalUsageError.
    """
    shown = [_Shown(attempt, split_id(line["id"])[2], line["evidence"]) for attempt, line in attempt_lines_of(results)]
    attempts = [one.attempt for one in shown]
    tasks = task_rows(attempts, planned)
    places = _write_trajectories(shown, results.run, folder / "trajectories")
    _write_tasks(tasks, shown, places, folder / "tasks")
    return _write_sets(tasks, attempts, folder / "models")


def _write_sets(tasks: Sequence[TaskRow], attempts: Sequence[Attempt], folder: Path) -> dict[str, Any]:
    sets = dataset_rows(attempts, tasks)
    of_tasks = _grouped(((task.dataset, task.model), task) for task in tasks)
    of_attempts = _grouped(((one.dataset, one.model), one) for one in attempts)
    tells = discrimination(tasks)
    for number, row in enumerate(sets):
        key = row.dataset, row.model
        script(
            folder / f"{number}.js",
            "model",
            number,
            model_blocks(row, of_tasks[key], of_attempts[key], tells),
        )
    return {
        "blocks": overview(sets, of_tasks),
        "sets": [[one_line(row.dataset), one_line(row.model)] for row in sets],
        "tasks": [[one_line(name) for name in key] for key in _task_keys(tasks)],
        "tasksAFile": TASKS_A_FILE,
    }


def _write_tasks(tasks: Sequence[TaskRow], shown: Iterable[_Shown], places: Mapping[str, Place], folder: Path) -> None:
    rows = _grouped(((task.dataset, task.task), task) for task in tasks)
    attempts = _grouped(((one.attempt.dataset, one.attempt.task), one) for one in shown)
    known = _task_keys(tasks)
    for start in range(0, len(known), TASKS_A_FILE):
        pages = []
        for key in known[start : start + TASKS_A_FILE]:
            ordered = sorted(attempts[key], key=lambda one: (one.attempt.model, one.attempt.attempt))
            of_task = {one.item: places[id] for one in ordered if (id := node_id(*key, one.item)) in places}
            pages.append(task_page(rows[key], [(one.attempt, one.item) for one in ordered], of_task))
        number = start // TASKS_A_FILE
        script(folder / f"{number}.js", "tasks", number, pages)


def _write_trajectories(shown: Sequence[_Shown], run: Path, folder: Path) -> dict[str, Place]:
    """Write the trajectories of some attempts; return where each is, by node id."""
    places: dict[str, Place] = {}
    file: list[Any] = []
    size = number = 0
    for one in sorted(shown, key=lambda one: not one.attempt.flags)[:MOST_TRAJECTORIES]:
        talk = talks(run, one.place) if one.place else []
        if not talk:
            continue
        if file and size > TRAJECTORY_FILE_BYTES:
            script(folder / f"{number}.js", "trajectories", number, file)
            file, size, number = [], 0, number + 1
        places[node_id(one.attempt.dataset, one.attempt.task, one.item)] = number, len(file)
        file.append(talk)
        size += len(script_json(talk))
    if file:
        script(folder / f"{number}.js", "trajectories", number, file)
    return places


def _task_keys(tasks: Iterable[TaskRow]) -> list[tuple[str, str]]:
    return sorted({(task.dataset, task.task) for task in tasks})


def _grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    groups: dict[_Key, list[_Value]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups
