"""Copies of tasks, and faults put into them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.judge.files import MOST_BYTES
from pytest_otval.judge.seeding.texts import Fault
from pytest_otval.task.copies import special_files


def copy_task(source: Path, target: Path) -> None:
    """Copy a task to be read by a judge: regular files, folders, and links as links.

    Of a file that is longer than what is ever shown only the size is copied. Raises Conclusion ``bad-task``.
    """
    try:
        shutil.copytree(source, target, symlinks=True, ignore=special_files, copy_function=_copy)
    except (OSError, shutil.Error, RecursionError) as error:
        raise Conclusion("bad-task", f"{source.name}/ cannot be copied: {str(error)[:200]}") from None


def plant(fault: Fault, folder: Path) -> None:
    """Put a fault into a copy of its task. What stands in the place of a file that it changes is replaced.

    Raises Conclusion ``bad-task``, for one where the task gives a name that no file can have.
    """
    try:
        for path, text in fault.changes.items():
            file = folder / path
            mode = file.stat().st_mode if file.is_file() else 0o644
            file.unlink(missing_ok=True)
            file.write_bytes(text.encode())
            file.chmod(mode)
    except OSError as error:
        raise Conclusion("bad-task", f"{fault.seed} cannot be put into {folder.name}/: {error.strerror}") from None


def _copy(source: str, target: str) -> str:
    size = os.stat(source).st_size  # noqa: PTH116
    if size <= MOST_BYTES:
        return shutil.copy2(source, target)
    with open(target, "wb") as file:  # noqa: PTH123
        file.truncate(size)
    return target
