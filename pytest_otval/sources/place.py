"""Where tasks lie while they are made: on the node, and gone afterwards, also after a process that was killed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_otval.sandbox.leftovers import OwnScratch, sweep
from pytest_otval.task.pack import MAX_ROW_BYTES
from pytest_otval.workspace import node_folder, scratch

_FOLDER = "prepare"


@contextmanager
def own_scratch(base: Path) -> Iterator[Path]:
    """Give an empty folder below ``base``, which is this user's; what killed processes left there is removed."""
    base = base / _FOLDER
    base.mkdir(exist_ok=True)
    sweep(base, shutil.rmtree)
    own = OwnScratch(base)
    folder = own.new("tasks")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        own.close()


def quick_scratch(processes: int) -> Path:
    """Return where folders of single tasks are made: in memory, if so many of the largest have room there.

    On a disk the files of a task can take longer than all that is done with them.
    """
    memory = node_folder()
    return memory if shutil.disk_usage(memory).free > processes * MAX_ROW_BYTES else scratch()
