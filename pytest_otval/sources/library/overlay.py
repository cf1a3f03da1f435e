"""Patches that are files: a folder that is laid over tasks."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_otval.core import OtvalUsageError
from pytest_otval.sources.editor import PatchError, TaskEditor
from pytest_otval.sources.files import File
from pytest_otval.sources.patches import Patch


def overlay(
    id: str, fault: str, folder: Path, *, tasks: Sequence[str] = (), replaces: Mapping[str, str] | None = None
) -> Patch:
    """Files that tasks get in the place of their own, or beside them, at the same paths as in ``folder``.

    ``replaces`` holds, by path, the sha256 of what a file of the folder was made to replace: where a task has
    something else, its source changed and the patch does not apply. Raises OtvalUsageError for a folder without
    files, with links, or that lacks what ``replaces`` names.
    """
    files = _read(folder)
    expected = dict(replaces or {})
    if missing := sorted(expected.keys() - files.keys()):
        raise OtvalUsageError(f"overlay {id}: {folder} has no {missing[0]}, which is to be replaced")

    def differs(task: TaskEditor, path: str) -> bool:
        file = files[path]
        return task.data(path) != file.content or task.is_executable(path) != file.executable

    def change(task: TaskEditor) -> None:
        for path in filter(lambda path: differs(task, path), files):
            was = task.data(path)
            if path in expected and (was is None or hashlib.sha256(was).hexdigest() != expected[path]):
                raise PatchError(f"{path} is not what the patch was made for: the source changed")
            task.write(path, files[path].content, files[path].executable)

    def digest() -> str:
        parts = (
            f"{path}\0{file.executable}\0{hashlib.sha256(file.content).hexdigest()}" for path, file in files.items()
        )
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    return Patch(
        id,
        fault,
        change,
        lambda task: any(differs(task, path) for path in files),
        tuple(tasks),
        inputs=digest,
    )


def _read(folder: Path) -> dict[str, File]:
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise OtvalUsageError(f"{path} is no plain file: an overlay has files and folders alone")
        if path.is_file():
            found[path.relative_to(folder).as_posix()] = File(path.read_bytes(), bool(path.stat().st_mode & 0o100))
    if not found:
        raise OtvalUsageError(f"{folder} has no files to lay over tasks")
    return found
