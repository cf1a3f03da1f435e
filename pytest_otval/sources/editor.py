"""A task that a patch changes: its files on scratch, read and written without following what the task planted."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import tomli
import tomlkit
from tomlkit.exceptions import TOMLKitError

from pytest_otval.core import printable
from pytest_otval.sources.toml_text import with_values
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
        self._kept: dict[Path, Path | None] | None = None
        """Where lies what was at a place before, while it may have to go back; None where nothing was."""

    @property
    def task(self) -> Task:
        """The task as it is now."""
        return load_task(self.folder, self.dataset)

    def content(self) -> dict[str, str]:
        """Return type, exec bit and digest of each file, by path."""
        return task_content(self.folder)[1]

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Take back every change that is made within, where it ends with a PatchError."""
        self._kept = {}
        try:
            yield
        except PatchError:
            for place, kept in self._kept.items():
                place.unlink(missing_ok=True)
                if kept is not None:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    kept.rename(place)
            raise
        finally:
            for kept in self._kept.values():
                if kept is not None:
                    kept.unlink(missing_ok=True)
            self._kept = None

    def changed(self) -> list[str]:
        """Return the paths at which something else lies than when ``all_or_nothing`` began, sorted."""
        places = (self._kept or {}).items()
        return sorted(
            place.relative_to(self.folder).as_posix() for place, kept in places if _facts(place) != _facts(kept)
        )

    def _clear(self, place: Path) -> None:
        """Make room for what comes to lie at a place: what lies there may be a link or a pipe."""
        there = os.path.lexists(place)
        if place.is_dir() and not place.is_symlink():
            raise PatchError(f"{printable(str(place.relative_to(self.folder)))} is a folder")
        if self._kept is None or place in self._kept:
            place.unlink(missing_ok=True)
            return
        kept = self.folder.with_name(f".{self.name}.undo-{len(self._kept)}") if there else None
        self._kept[place] = kept
        if kept is not None:
            place.rename(kept)

    def has(self, path: str) -> bool:
        """Whether there is a regular file, behind no link."""
        return self.data(path) is not None

    def data(self, path: str) -> bytes | None:
        """Return a file's bytes; None where there is no such regular file, or one of more than ``MAX_BYTES``."""
        try:
            return read_regular(self._place(path), MAX_BYTES)
        except (FileNotFoundError, NotReadableError):
            return None

    def is_executable(self, path: str) -> bool:
        """Whether a regular file may be called by its path."""
        return self.data(path) is not None and bool(self._place(path).stat().st_mode & 0o100)

    def text(self, path: str) -> str:
        """Return a file's text, an empty one where there is no such file. Raises PatchError for what is no text."""
        data = self.data(path)
        try:
            return "" if data is None else data.decode()
        except UnicodeDecodeError:
            raise PatchError(f"{printable(path)} is no UTF-8") from None

    def write(self, path: str, content: str | bytes, executable: bool | None = None) -> None:
        """Write a file; ``executable`` None: as the file that was there, else not. Raises PatchError."""
        place = self._place(path)
        was = self.data(path)
        mode = place.stat().st_mode if was is not None else 0o644
        place.parent.mkdir(parents=True, exist_ok=True)
        self._clear(place)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        bit = bool(mode & 0o100) if executable is None else executable
        place.chmod(0o755 if bit else 0o644)

    def make_executable(self, path: str) -> None:
        """Let a file be called by its path. Raises PatchError where there is none."""
        data = self.data(path)
        if data is None:
            raise PatchError(f"there is no {printable(path)}: the source changed")
        self.write(path, data, executable=True)

    def replace(self, path: str, old: str, new: str, count: int = 1) -> None:
        """Replace text in a file. Raises PatchError where ``old`` does not stand there ``count`` times."""
        text = self.text(path)
        found = text.count(old)
        if found != count:
            words = f"{printable(old)[:60]!r} stands there {found} times, not {count}"
            raise PatchError(f"{printable(path)}: {words}: the source changed")
        self.write(path, text.replace(old, new))

    def remove(self, path: str) -> None:
        """Remove a file, and folders that are empty then. Raises PatchError where there is none."""
        place = self._place(path)
        if not os.path.lexists(place):
            raise PatchError(f"there is no {printable(path)}: the source changed")
        self._clear(place)
        for above in place.parents:
            if above == self.folder or any(above.iterdir()):
                break
            above.rmdir()

    def settings(self) -> dict[str, Any]:
        """Return what task.toml says; nothing where it is no TOML."""
        try:
            return tomli.loads(self.text(TASK_TOML))
        except (ValueError, RecursionError, PatchError):
            return {}

    def put(self, table: str, values: Mapping[str, str | int | float]) -> None:
        """Set values of a table of task.toml, named by its dotted path; comments are kept. Raises PatchError."""
        longer = with_values(self.text(TASK_TOML), table, values)
        if longer is not None:
            self.write(TASK_TOML, longer)
            return
        with self.toml() as document:
            for name, value in values.items():
                set_in(document, f"{table}.{name}" if table else name, value)

    def toml(self) -> TomlEdit:
        """Return task.toml to be changed, comments kept: ``with task.toml() as document: ...``."""
        return TomlEdit(self)

    def _place(self, path: str) -> Path:
        *folders, name = _parts(path)
        place = str(self.folder)
        for part in folders:
            place = f"{place}/{part}"
            with suppress(FileNotFoundError):
                if not stat.S_ISDIR(os.lstat(place).st_mode):
                    raise PatchError(f"{printable(path)} lies behind what is no folder")
        return Path(place, name)


@lru_cache(maxsize=1024)
def _parts(path: str) -> tuple[str, ...]:
    """Return the parts of a path. Raises PatchError for one that is none within a task."""
    parts = PurePosixPath(path).parts
    if not parts or parts[0] == "/" or ".." in parts or "\0" in path:
        raise PatchError(f"{printable(path)!r} is no path within a task")
    return parts


def _facts(place: Path | None) -> tuple[int, bytes] | None:
    """Return what lies at a place: type and exec bit, and content or goal; None for nothing."""
    try:
        if place is None:
            return None
        mode = place.lstat().st_mode
        if stat.S_ISREG(mode):
            return stat.S_IFREG | mode & stat.S_IXUSR, read_regular(place, MAX_BYTES)
        return stat.S_IFMT(mode), os.fsencode(place.readlink()) if stat.S_ISLNK(mode) else b""
    except FileNotFoundError:
        return None
    except (OSError, NotReadableError):
        return 0, b""


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
