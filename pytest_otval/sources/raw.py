"""Tasks as they are prepared: those that are Harbor's already, folders or packed, and what adapters make."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.core import OtvalUsageError
from pytest_otval.sources.adapters.base import Converted, Outcome, Refused
from pytest_otval.sources.files import SourceError, publish_folder
from pytest_otval.task.index import is_prepared
from pytest_otval.task.source import TaskSource, source_of


@dataclass(frozen=True, slots=True)
class HarborTask:
    """See ``making.Raw``."""

    name: str
    source: TaskSource

    def write(self, folder: Path) -> None:
        """Write the files, links as links. Raises SourceError, Conclusion ``bad-task``."""
        found = self.source.folder(self.name, folder.parent / ".unpacked")
        try:
            if found.is_relative_to(folder.parent):
                found.rename(folder)
            else:
                shutil.copytree(found, folder, symlinks=True)
        except (OSError, shutil.Error) as error:
            raise SourceError(f"its files cannot be copied: {error}") from None


def harbor_tasks(path: Path) -> Iterator[HarborTask]:
    """Yield the tasks below a folder, by name. Raises SourceError where there is none."""
    try:
        if not is_prepared(path):
            raise SourceError(f"{path} has no tasks: neither folders with a task.toml nor a packed form")
        source = source_of(path)
        names = source.names()[0]
    except (OtvalUsageError, OSError) as error:
        raise SourceError(str(error)) from None
    for name in names:
        yield HarborTask(name, source)


@dataclass(frozen=True, slots=True)
class ConvertedTask:
    """A task that an adapter made; see ``making.Raw``."""

    converted: Converted

    @property
    def name(self) -> str:
        """Its name in the dataset."""
        return self.converted.name

    def write(self, folder: Path) -> None:
        """Write the files. Raises SourceError."""
        publish_folder(self.converted.files, folder)


def converted_tasks(outcomes: Iterable[Outcome]) -> Iterator[ConvertedTask | Refused]:
    """Yield what an adapter made, as it is prepared."""
    for outcome in outcomes:
        yield ConvertedTask(outcome) if isinstance(outcome, Converted) else outcome
