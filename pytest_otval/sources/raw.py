"""Tasks as they are prepared: those that are Harbor's already, folders or packed, and what adapters make."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pytest_otval.core import OtvalUsageError, printable
from pytest_otval.sources.adapters.base import Converted, Outcome, Refused
from pytest_otval.sources.adapters.names import decode_name
from pytest_otval.sources.files import SourceError, write_folder
from pytest_otval.task.digest import digest_of_files, task_content
from pytest_otval.task.index import is_prepared
from pytest_otval.task.source import TaskSource, source_of

_TAKEN = ("file", "link")


@dataclass(frozen=True, slots=True)
class HarborTask:
    """A task of a folder of tasks, or of a packed dataset; see ``parts.Raw``."""

    name: str
    dataset: Path

    @property
    def record(self) -> str:
        """What the source calls it."""
        return self.name

    def digest(self, scratch: Path) -> str:
        """Return its digest; a packed task is unpacked for it. Raises SourceError, Conclusion ``bad-task``."""
        folder = self._folder(scratch)
        digest, content = task_content(folder)
        if folder.is_relative_to(scratch):
            shutil.rmtree(folder)
        for path, facts in content.items():
            if facts.partition(" ")[0] not in _TAKEN:
                raise SourceError(f"its files cannot be copied: {printable(path)} is unreadable, or no regular file")
        return digest

    def write(self, folder: Path) -> None:
        """Write the files, links as links. Raises SourceError, Conclusion ``bad-task``."""
        found = self._folder(folder.parent / ".unpacked")
        try:
            if found.is_relative_to(folder.parent):
                folder.parent.mkdir(parents=True, exist_ok=True)
                found.rename(folder)
            else:
                shutil.copytree(found, folder, symlinks=True)
        except (OSError, shutil.Error) as error:
            raise SourceError(f"the files of {self.name} cannot be copied: {error}") from None

    def _folder(self, scratch: Path) -> Path:
        return _opened(self.dataset, os.getpid()).folder(self.name, scratch)


@lru_cache(maxsize=1)
def _opened(dataset: Path, process: int) -> TaskSource:
    """Return a dataset whose names are read once a process; none uses the open files of another."""
    return source_of(dataset)


def harbor_tasks(path: Path) -> Iterator[HarborTask]:
    """Yield the tasks below a folder, by name. Raises SourceError where there is none."""
    try:
        if not is_prepared(path):
            raise SourceError(f"{path} has no tasks: neither folders with a task.toml nor a packed form")
        names = source_of(path).names()[0]
    except (OtvalUsageError, OSError) as error:
        raise SourceError(str(error)) from None
    for name in names:
        yield HarborTask(name, path)


@dataclass(frozen=True, slots=True)
class ConvertedTask:
    """A task that an adapter made; see ``parts.Raw``."""

    converted: Converted

    @property
    def name(self) -> str:
        """Its name in the dataset."""
        return self.converted.name

    @property
    def record(self) -> str:
        """What the source calls it."""
        return decode_name(self.name)

    def digest(self, scratch: Path) -> str:
        """Return its digest."""
        return digest_of_files((path, one.executable, one.content) for path, one in self.converted.files.items())

    def write(self, folder: Path) -> None:
        """Write the files. Raises OSError."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        write_folder(self.converted.files, folder)


def converted_tasks(outcomes: Iterable[Outcome]) -> Iterator[ConvertedTask | Refused]:
    """Yield what an adapter made, as it is prepared."""
    for outcome in outcomes:
        yield ConvertedTask(outcome) if isinstance(outcome, Converted) else outcome
