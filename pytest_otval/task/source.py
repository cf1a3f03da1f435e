"""Where a dataset's tasks come from: folders, or one of the packed forms."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from pytest_otval.core import OtvalUsageError
from pytest_otval.task.index import TASK_TOML, has_task_folders, is_task, task_names, tasks_folder
from pytest_otval.task.packed.forms import Form, names_our_columns, packed_files
from pytest_otval.task.reading import NotReadableError, read_regular


class TaskSource(Protocol):
    """The tasks of one dataset. Whatever form they have, names, digests and verdicts are the same."""

    @property
    def path(self) -> Path:
        """The dataset's folder."""

    def names(self) -> tuple[list[str], list[str]]:
        """Return the names of the tasks, and of what lies beside them and is none, each sorted; no task is read.

        Raises OtvalUsageError for a packed file that cannot be used.
        """

    def has(self, name: str) -> bool:
        """Whether there is a task of this name. Raises OtvalUsageError as ``names`` does."""

    def anchor(self, name: str) -> Path:
        """Return the existing file that stands for a task in pytest's reports: its task.toml, or the packed file."""

    def folder(self, name: str, scratch: Path) -> Path:
        """Return the task's folder: where it lies, or unpacked as ``scratch/<dataset>/<name>``.

        What is unpacked is made new each time and is the caller's to delete; what lies in place is not: it is below
        ``path``. Raises Conclusion ``bad-task`` for what must not or cannot be unpacked, ``host-disk-full``,
        ``dataset-unreadable``.
        """

    def peek(self, name: str, paths: Collection[str], limit: int) -> dict[str, bytes]:
        """Return the content of those of a task's files that are regular, behind no link, and no larger.

        Nothing is unpacked. Raises Conclusion as ``folder`` does.
        """


class FolderSource:
    """Tasks that are folders."""

    def __init__(self, dataset: Path) -> None:
        self.path = dataset
        self._tasks = tasks_folder(dataset)

    def names(self) -> tuple[list[str], list[str]]:
        """Return tasks and other folders, by one scan."""
        return task_names(self.path)

    def has(self, name: str) -> bool:
        """Whether the folder is there and has a task.toml."""
        return not name.startswith(".") and "/" not in name and is_task(self._tasks / name)

    def anchor(self, name: str) -> Path:
        """Return the task's task.toml."""
        return self._tasks / name / TASK_TOML

    def folder(self, name: str, scratch: Path) -> Path:
        """Return the folder itself."""
        return self._tasks / name

    def peek(self, name: str, paths: Collection[str], limit: int) -> dict[str, bytes]:
        """Return files by their paths."""
        # By texts: pathlib would take most of the time that the files of 50,000 tasks take.
        task = f"{self._tasks}/{name}"
        found = {}
        for path in paths:
            above = path.rpartition("/")[0]
            with suppress(OSError, NotReadableError):
                if not above or stat.S_ISDIR(os.lstat(f"{task}/{above}").st_mode):
                    found[path] = read_regular(f"{task}/{path}", limit)
        return found


def source_of(dataset: Path) -> TaskSource:
    """Return where the tasks of a dataset come from.

    Raises OtvalUsageError where that is not clear. A packed file is opened when names are asked for, not before.
    """
    packed = packed_files(dataset)
    folders = has_task_folders(dataset)
    if Form.PARQUET in packed and (folders or len(packed) > 1) and not names_our_columns(packed[Form.PARQUET][0]):
        # Other data beside the tasks.
        del packed[Form.PARQUET]
    if len(packed) + folders > 1:
        raise OtvalUsageError(_ambiguous(dataset, folders, packed))
    for form, files in packed.items():
        return _packed_source(form, dataset, files)
    return FolderSource(dataset)


def _packed_source(form: Form, dataset: Path, files: list[Path]) -> TaskSource:
    # Readers import libraries that no other run has to pay for.
    if form is Form.PARQUET:
        from pytest_otval.task.packed.parquet import ParquetSource

        return ParquetSource(dataset, files)
    if form is Form.TAR:
        from pytest_otval.task.packed.tar import TarSource

        return TarSource(dataset, files[0])
    from pytest_otval.task.packed.squashfs import SquashfsSource

    return SquashfsSource(dataset, files[0])


def _shown_folders(dataset: Path) -> str:
    folder = tasks_folder(dataset)
    return "the folders of tasks in it" if folder == dataset else f"{folder.name}/"


def _ambiguous(dataset: Path, folders: bool, packed: dict[Form, list[Path]]) -> str:
    kept, *others = [
        *([_shown_folders(dataset)] if folders else []),
        *(os.path.relpath(files[0], dataset) for files in packed.values()),
    ]
    return f"dataset {dataset} has its tasks twice: remove {' and '.join(others)}, or {kept}"
