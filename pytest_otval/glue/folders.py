"""Where the files of the task at hand lie: in place, or unpacked for as long as its stages are asked."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.task.digest import task_digest
from pytest_otval.task.load import Task, load_task
from pytest_otval.task.source import TaskSource


class AtHand:
    """A task whose files can be read."""

    def __init__(self, folder: Path, dataset: str) -> None:
        self.folder = folder
        self.digest = task_digest(folder)
        self._dataset = dataset

    @cached_property
    def task(self) -> Task:
        """The task, loaded once somebody asks: what is said of a digest may be known already."""
        return load_task(self.folder, self._dataset)


class TaskFolders:
    """Keeps the last task at hand: its stages come one after the other."""

    def __init__(self, scratch: Callable[[], Path]) -> None:
        """``scratch`` makes, or returns, the folder to unpack to."""
        self._scratch = scratch
        self._key: tuple[TaskSource, str] | None = None
        self._at_hand: AtHand | Conclusion | None = None

    def get(self, source: TaskSource, dataset: str, name: str) -> AtHand:
        """Return a task. Raises Conclusion ``bad-task`` for one that must not be unpacked."""
        if self._key != (source, name):
            self.drop()
            self._key = (source, name)
            try:
                self._at_hand = AtHand(source.folder(name, self._scratch()), dataset)
            except Conclusion as conclusion:
                self._at_hand = conclusion
        if isinstance(self._at_hand, Conclusion):
            raise self._at_hand
        assert self._at_hand is not None
        return self._at_hand

    def drop(self) -> None:
        """Delete what was unpacked."""
        if isinstance(self._at_hand, AtHand) and self._at_hand.folder.is_relative_to(self._scratch()):
            shutil.rmtree(self._at_hand.folder, ignore_errors=True)
        self._key = self._at_hand = None
