"""From command-line arguments to what is to be collected: datasets, their tasks, their stages.

Our arguments are taken out of pytest's hands before collection: it would scan every sibling for each of them, and
read a task's own files as configuration on the way.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pytest_otval.core import NAME, OtvalUsageError
from pytest_otval.task.dataset import DATASET_TOML
from pytest_otval.task.index import (
    enclosing_dataset,
    has_marker,
    is_dataset,
    is_prepared,
    is_task,
    task_names,
    tasks_folder,
)

Stages = frozenset[str]


@dataclass(slots=True)
class DatasetSelection:
    """A dataset and what is wanted of it."""

    path: Path
    """Where its tasks are."""
    whole: bool = False
    tasks: dict[str, Stages | None] = field(default_factory=dict)
    """Wanted tasks; None: all stages that are asked for by mark or default."""
    own_stages: bool = False
    """Whether the dataset's own item was named."""

    def add(self, task: str, stage: str | None) -> None:
        """Want a task, or one stage of it."""
        before = self.tasks.get(task, frozenset())
        self.tasks[task] = None if stage is None or before is None else before | {stage}


Selection = dict[str, DatasetSelection]
"""By dataset name."""


def split(args: Iterable[str], cwd: Path, places: Iterable[Path], stages: Iterable[str]) -> tuple[Selection, list[str]]:
    """Return what our arguments select, and the arguments that are not ours.

    ``places`` are the folders below which ``datasets/NAME/...`` of a node id is looked for, ``stages`` the names of
    all stages.
    Raises OtvalUsageError for unknown tasks and stages, unprepared datasets and two datasets of one name.
    """
    selection: Selection = {}
    rest = []
    places, stages = (cwd, *places), tuple(stages)
    for arg in args:
        name, _, stage = arg.partition("::")
        path = _find(name, places)
        if path is None:
            _refuse_unknown_task(name, arg, places)
        if path is None or not _select(selection, path, stage or None, arg, places, stages):
            rest.append(arg)
    return selection, rest


def absolute(path: Path) -> Path:
    """Return a path without ``..``, links kept: a dataset is named as the user names it."""
    return Path(os.path.normpath(Path.cwd() / path))


def _find(name: str, places: Iterable[Path]) -> Path | None:
    for place in places:
        path = absolute(place / name)
        if os.path.lexists(path):
            return path
    return None


def _select(
    selection: Selection, path: Path, stage: str | None, arg: str, places: tuple[Path, ...], stages: tuple[str, ...]
) -> bool:
    """Add what one argument names; return whether it is ours."""
    dataset = enclosing_dataset(path)
    if dataset is None:
        path = Path(os.path.realpath(path))
        dataset = enclosing_dataset(path)
    if dataset is None:
        return False
    if path.name == DATASET_TOML and path.parent == dataset:
        _check_stage(stage, ("static",), arg)
        _dataset(selection, _prepared(dataset, places)).own_stages = True
        return True
    task = _task_at(dataset, path)
    if task is not None:
        _check_stage(stage, stages, arg)
        _dataset(selection, dataset).add(task, stage)
        return True
    if path not in (dataset, dataset / "tasks"):
        raise OtvalUsageError(_unknown_task(dataset, path, arg))
    if stage is not None:
        raise OtvalUsageError(f"{arg}: a stage of all tasks is chosen by `-m {stage}`")
    _dataset(selection, _prepared(dataset, places)).whole = True
    return True


def _task_at(dataset: Path, path: Path) -> str | None:
    """Return the name of the dataset's task that ``path`` is, or lies in."""
    folder = tasks_folder(dataset)
    if path == folder or not path.is_relative_to(folder):
        return None
    name = path.relative_to(folder).parts[0]
    return name if is_task(folder / name) else None


def _check_stage(stage: str | None, known: tuple[str, ...], arg: str) -> None:
    if stage is not None and stage not in known:
        raise OtvalUsageError(f"{arg}: there is no stage {stage!r}{_near(stage, known)}")


def _refuse_unknown_task(name: str, arg: str, places: tuple[Path, ...]) -> None:
    """Say what is wrong with a path that leads into a dataset and ends nowhere."""
    for place in places:
        path = absolute(place / name)
        for folder in path.parents:
            if has_marker(folder) or (path.is_relative_to(folder / "tasks") and is_dataset(folder)):
                raise OtvalUsageError(_unknown_task(folder, path, arg))


def _unknown_task(dataset: Path, path: Path, arg: str) -> str:
    folder = tasks_folder(dataset)
    if path.is_relative_to(folder) and not os.path.lexists(path):
        wanted = path.relative_to(folder).parts[0]
        return f"{arg}: {dataset.name} has no task {wanted!r}{_near(wanted, task_names(dataset)[0])}"
    return f"{arg} is no task of {dataset.name}, and nothing else in a dataset is run"


def _dataset(selection: Selection, path: Path) -> DatasetSelection:
    if not NAME.fullmatch(path.name):
        raise OtvalUsageError(
            f"dataset folder {path}: only letters, digits and . _ - can stand in a node id; rename it"
        )
    known = selection.setdefault(path.name, DatasetSelection(path))
    if known.path != path and not _same(known.path, path):
        raise OtvalUsageError(f"two datasets are called {path.name}: {known.path} and {path}; run them apart")
    return known


def _same(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:
        return False


def _prepared(dataset: Path, places: tuple[Path, ...]) -> Path:
    """Return the folder that has the tasks: the dataset's own, else its prepared form in the workspace."""
    if is_prepared(dataset):
        return dataset
    for place in places:
        candidate = place / "datasets" / dataset.name
        if candidate != dataset and is_prepared(candidate):
            return candidate
    script = dataset / "patch.py"
    shown = os.path.relpath(script) if script.is_file() else ""
    how = f"run `python {shown} fetch` and `python {shown} prepare`" if shown else "it has no tasks and no patch.py"
    raise OtvalUsageError(f"dataset {dataset.name} is not prepared: {how}")


def _near(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
