"""What is a dataset, what is a task, and which tasks a dataset has: names alone, nothing is parsed.

The questions of os.path are asked, not pathlib's, which raise for link loops, overlong names and closed folders.
"""

from __future__ import annotations

import os
from pathlib import Path

from pytest_otval.task.dataset import DATASET_TOML, dataset_folder
from pytest_otval.task.packed.forms import folder_of, is_packed

TASK_TOML = "task.toml"


def is_task(folder: Path) -> bool:
    """Whether the folder is a task: it has a task.toml (whatever kind of file)."""
    return os.path.lexists(folder / TASK_TOML)


def is_dataset(folder: Path) -> bool:
    """Whether the folder is a dataset: it has a dataset.toml, or its tasks are there."""
    return _has_manifest(folder) or is_prepared(folder)


def is_prepared(folder: Path) -> bool:
    """Whether the tasks of a dataset are there: right below it, below ``tasks/``, or packed."""
    return has_task_folders(folder) or has_packed_tasks(folder)


def has_task_folders(dataset: Path) -> bool:
    """Whether tasks lie as folders below ``tasks/`` or right in the dataset."""
    return _has_tasks(dataset / "tasks") or _has_tasks(dataset)


def has_packed_tasks(dataset: Path) -> bool:
    """Whether tasks are packed into files of the dataset."""
    return is_packed(dataset, marked=_has_manifest(dataset))


def tasks_folder(dataset: Path) -> Path:
    """Return the folder whose children are the dataset's tasks; of a packed dataset one that is not there."""
    inner = dataset / "tasks"
    # In a folder of tasks one may be called so.
    if os.path.isdir(inner) and not is_task(inner):  # noqa: PTH112
        return inner
    return inner if not _has_tasks(dataset) and has_packed_tasks(dataset) else dataset


def task_names(dataset: Path) -> tuple[list[str], list[str]]:
    """Return the names of a dataset's tasks and of folders beside them without a task.toml, each sorted."""
    tasks: list[str] = []
    others: list[str] = []
    folder = tasks_folder(dataset)
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or not os.path.isdir(entry.path):  # noqa: PTH112
                continue
            (tasks if os.path.lexists(f"{entry.path}/{TASK_TOML}") else others).append(entry.name)
    # Beside dataset.toml lie other folders too; only in a tasks/ folder is a folder without task.toml a slip.
    return sorted(tasks), sorted(others) if folder != dataset else []


def owner_of(path: Path) -> Path | None:
    """Return the outermost task or dataset folder that ``path`` is, or lies in; None where there is none.

    Folders are known by their task.toml or dataset.toml alone: a project that keeps tasks in ``tasks/`` is none.
    """
    found = None
    for folder in (path, *path.parents):
        if has_marker(folder):
            found = folder
    return found


def has_marker(folder: Path) -> bool:
    """Whether a folder says by a file that it is a task or a dataset."""
    return os.path.lexists(folder / TASK_TOML) or os.path.lexists(folder / DATASET_TOML)


def enclosing_dataset(path: Path) -> Path | None:
    """Return the dataset folder that ``path`` is, or lies in; also one without a dataset.toml. None: there is none.

    ``path`` may be the place where a packed task would lie, or a file of packed tasks.
    """
    owner = owner_of(path)
    if owner is not None:
        return owner if os.path.lexists(owner / DATASET_TOML) else dataset_folder(owner)
    if path.name == "tasks" and is_dataset(path.parent):
        return path.parent
    if is_dataset(path):
        return path
    around = folder_of(path)
    return around if around is not None and has_packed_tasks(around) else packed_around(path)


def packed_around(path: Path) -> Path | None:
    """Return the packed dataset whose ``tasks`` ``path`` would be, or lie in, if it were unpacked."""
    for folder in (path, *path.parents):
        if folder.name == "tasks" and has_packed_tasks(folder.parent):
            return folder.parent
    return None


def _has_manifest(folder: Path) -> bool:
    return os.path.isfile(folder / DATASET_TOML)  # noqa: PTH113


def _has_tasks(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(os.path.lexists(f"{entry.path}/{TASK_TOML}") for entry in entries)
    except OSError:
        return False
