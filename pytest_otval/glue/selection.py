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
from pytest_otval.glue.below import datasets_below
from pytest_otval.task.dataset import DATASET_TOML, same_settings
from pytest_otval.task.index import (
    enclosing_dataset,
    has_marker,
    is_dataset,
    is_prepared,
    packed_around,
    tasks_folder,
)
from pytest_otval.task.packed.forms import folder_of
from pytest_otval.task.source import FolderSource, TaskSource, source_of

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
    _source: TaskSource | None = None

    @property
    def source(self) -> TaskSource:
        """Where its tasks come from; one object a process, which keeps names. Raises OtvalUsageError."""
        if self._source is None:
            self._source = source_of(self.path)
        return self._source

    def add(self, task: str, stage: str | None) -> None:
        """Want a task, or one stage of it."""
        before = self.tasks.get(task, frozenset())
        self.tasks[task] = None if stage is None or before is None else before | {stage}


class UnpreparedError(OtvalUsageError):
    """A dataset has no tasks yet."""


Selection = dict[str, DatasetSelection]
"""By dataset name."""


def split(
    args: Iterable[str],
    cwd: Path,
    places: Iterable[Path],
    stages: Iterable[str],
    unprepared: list[str] | None = None,
    gather: bool = False,
) -> tuple[Selection, list[str]]:
    """Return what our arguments select, and the arguments that are not ours.

    ``places`` are the folders below which ``datasets/NAME/...`` of a node id is looked for, ``stages`` the names of
    all stages. What keeps a dataset of a folder of datasets from being selected is added to ``unprepared``; with
    ``gather`` also what keeps one that an argument names.
    Raises OtvalUsageError for unknown tasks and stages, unprepared datasets, two datasets of one name and packed files
    that cannot be used.
    """
    selection: Selection = {}
    rest = []
    places, stages = (cwd, *places), tuple(stages)
    for arg in args:
        name, _, stage = arg.partition("::")
        path = _find(name, places)
        if path is None:
            _refuse_unknown_task(name, arg, places)
        try:
            if path is not None and _select(selection, path, stage or None, arg, places, stages):
                continue
        except UnpreparedError as error:
            if unprepared is None or not gather:
                raise
            unprepared.append(str(error))
            continue
        if path is None or not _select_below(selection, path, stage, arg, places, unprepared):
            rest.append(arg)
    for chosen in selection.values():
        if chosen.whole and not isinstance(chosen.source, FolderSource):
            chosen.source.names()
    return selection, rest


def absolute(path: Path) -> Path:
    """Return a path without ``..``, links kept: a dataset is named as the user names it."""
    return Path(os.path.normpath(Path.cwd() / path))


def _find(name: str, places: Iterable[Path]) -> Path | None:
    for place in places:
        path = absolute(place / name)
        if os.path.lexists(path) or packed_around(path) is not None:
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
    task = _name_at(dataset, path)
    if task is not None and (chosen := _dataset(selection, dataset)).source.has(task):
        _check_stage(stage, stages, arg)
        chosen.add(task, stage)
        return True
    if path not in (dataset, dataset / "tasks") and folder_of(path) != dataset:
        raise OtvalUsageError(_unknown_task(dataset, path, arg))
    if stage is not None:
        raise OtvalUsageError(f"{arg}: a stage of all tasks is chosen by `-m {stage}`")
    _dataset(selection, _prepared(dataset, places)).whole = True
    return True


def _select_below(
    selection: Selection,
    folder: Path,
    stage: str,
    arg: str,
    places: tuple[Path, ...],
    unprepared: list[str] | None,
) -> bool:
    """Add every prepared dataset of a folder of datasets; return whether pytest has nothing to look for there."""
    datasets, others = datasets_below(folder)
    if not datasets:
        return False
    if stage:
        raise OtvalUsageError(f"{arg}: a stage of all tasks is chosen by `-m {stage}`")
    left_out = []
    for dataset in datasets:
        try:
            _dataset(selection, _prepared(dataset, places)).whole = True
        except UnpreparedError as error:
            left_out.append(str(error))
    if len(left_out) == len(datasets):
        raise OtvalUsageError(f"{arg}: {'; '.join(left_out)}")
    if unprepared is not None:
        unprepared += left_out
    # Loose tests beside datasets are pytest's; a folder that is no dataset yet may be somebody else's code.
    return others


def _name_at(dataset: Path, path: Path) -> str | None:
    """Return the name of what is, or would be, in the dataset's folder of tasks and holds ``path``."""
    folder = tasks_folder(dataset)
    return path.relative_to(folder).parts[0] if path != folder and path.is_relative_to(folder) else None


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
    wanted = _name_at(dataset, path)
    if wanted is not None and not os.path.lexists(path):
        return f"{arg}: {dataset.name} has no task {wanted!r}{_near(wanted, source_of(dataset).names()[0])}"
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
    script = dataset / "patch.py"
    shown = os.path.relpath(script) if script.is_file() else ""
    for place in places:
        candidate = place / "datasets" / dataset.name
        if candidate != dataset and is_prepared(candidate):
            if shown and not same_settings(dataset / DATASET_TOML, candidate / DATASET_TOML):
                why = f"dataset.toml of {dataset.name} was changed since it was prepared"
                raise UnpreparedError(f"{why}: run `python {shown} prepare`")
            return candidate
    how = f"run `python {shown} fetch` and `python {shown} prepare`" if shown else "it has no tasks and no patch.py"
    raise UnpreparedError(f"dataset {dataset.name} is not prepared: {how}")


def _near(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
