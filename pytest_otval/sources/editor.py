"""A task that a patch changes: its files on scratch, read and written without following what the task planted."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from pytest_otval.core import printable
from pytest_otval.task.digest import task_content
from pytest_otval.task.index import TASK_TOML
from pytest_otval.task.load import Task, load_task
from pytest_otval.task.reading import NotReadableError, read_regular

MAX_BYTES = 16 * 1024 * 1024


class PatchError(Exception):
    """A patch cannot be applied; the text says why, in one line."""


class TaskEditor:
    """Changes the files of one task. Paths are relative, with ``/``."""

    def __init__(self, folder: Path, dataset: str) -> None:
        self.folder = folder
        self.name = folder.name
        self.dataset = dataset

    @property
    def task(self) -> Task:
        """The task as it is now."""
        return load_task(self.folder, self.dataset)

    def content(self) -> dict[str, str]:
        """Return type, exec bit and digest of each file, by path."""
        return task_content(self.folder)[1]

    def has(self, path: str) -> bool:
        """Whether there is a regular file, behind no link."""
        return self._read(path) is not None

    def text(self, path: str) -> str:
        """Return a file's text, an empty one where there is no such file. Raises PatchError for what is no text."""
        data = self._read(path)
        try:
            return "" if data is None else data.decode()
        except UnicodeDecodeError:
            raise PatchError(f"{printable(path)} is no UTF-8") from None

    def write(self, path: str, text: str, executable: bool | None = None) -> None:
        """Write a file; ``executable`` None: as the file that was there, else not. Raises PatchError."""
        place = self._place(path)
        was = self._read(path)
        mode = place.stat().st_mode if was is not None else 0o644
        place.parent.mkdir(parents=True, exist_ok=True)
        # What lies there may be a link or a pipe.
        if os.path.lexists(place):
            place.unlink()
        place.write_text(text)
        bit = bool(mode & 0o100) if executable is None else executable
        place.chmod(0o755 if bit else 0o644)

    def replace(self, path: str, old: str, new: str, count: int = 1) -> None:
        """Replace text in a file. Raises PatchError where ``old`` does not stand there ``count`` times."""
        text = self.text(path)
        found = text.count(old)
        if found != count:
            words = f"{printable(old)[:60]!r} stands there {found} times, not {count}"
            raise PatchError(f"{printable(path)}: {words}: the source changed")
        self.write(path, text.replace(old, new))

    def remove(self, path: str) -> None:
        """Remove a file. Raises PatchError where there is none."""
        place = self._place(path)
        if not os.path.lexists(place):
            raise PatchError(f"there is no {printable(path)}: the source changed")
        place.unlink()

    def toml(self) -> TomlEdit:
        """Return task.toml to be changed, comments kept: ``with task.toml() as document: ...``."""
        return TomlEdit(self)

    def _place(self, path: str) -> Path:
        parts = PurePosixPath(path).parts
        if not parts or parts[0] == "/" or ".." in parts or "\0" in path:
            raise PatchError(f"{printable(path)!r} is no path within a task")
        place = self.folder
        for part in parts[:-1]:
            place = place / part
            if place.is_symlink() or (os.path.lexists(place) and not place.is_dir()):
                raise PatchError(f"{printable(path)} lies behind what is no folder")
        return place / parts[-1]

    def _read(self, path: str) -> bytes | None:
        try:
            return read_regular(self._place(path), MAX_BYTES)
        except (FileNotFoundError, NotReadableError):
            return None


class TomlEdit:
    """task.toml as a document of tomlkit, written back at the end of the ``with``."""

    def __init__(self, editor: TaskEditor) -> None:
        self._editor = editor
        self._document: Any = None

    def __enter__(self) -> Any:
        try:
            self._document = tomlkit.parse(self._editor.text(TASK_TOML))
        except TOMLKitError as error:
            raise PatchError(f"{TASK_TOML} is no TOML: {printable(str(error))}") from None
        return self._document

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._editor.write(TASK_TOML, tomlkit.dumps(self._document))


def set_in(document: Any, path: str, value: Any) -> None:
    """Set a value of a TOML document by its dotted path; tables on the way are made."""
    *tables, key = path.split(".")
    for name in tables:
        document = document.setdefault(name, tomlkit.table())
    document[key] = value
