"""What adapters have in common: a record becomes a task or is refused, and no record ends the run of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from pytest_otval.core import Conclusion, printable
from pytest_otval.sources.adapters.names import encode_name
from pytest_otval.sources.files import File, Files
from pytest_otval.task.packed.unpack import Rules, shown

Reason = Literal[
    "bad-name",
    "compose",
    "cut-ids",
    "duplicate",
    "no-image",
    "no-solution",
    "no-tests",
    "too-large",
    "unreadable",
    "unsafe-path",
    "unsupported-tests",
    "wrong-field",
    "wrong-patch",
]
"""Why a record is refused; a closed list, so that refusals can be counted."""

MAX_TASK_BYTES = 256 * 1024 * 1024
"""Of all files of a task together: a task is in memory as a whole."""
MAX_FILE_BYTES = 64 * 1024 * 1024
"""Of one file that an adapter reads from a source's folder."""
_MAX_PART = 255
"""Bytes of a file's name, as file systems have it."""
_MAX_WHY = 300
_MAX_SHOWN_NAME = 200


@dataclass(frozen=True, slots=True)
class Converted:
    """A task, as the files of its folder."""

    name: str
    """The folder's name: it can stand in a node id."""
    files: Mapping[str, File]
    """By path, relative and with ``/``."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A record that does not become a task."""

    name: str
    """What the source calls the record, made printable."""
    reason: Reason
    why: str
    """One printable line: what is wrong with it, and where."""


Outcome = Converted | Refused


class Adapter(Protocol):
    """What turns one kind of source into tasks. Its options are a frozen dataclass, given when it is made."""

    @property
    def name(self) -> str:
        """What the registry calls it."""

    def convert(self, source: Path) -> Iterator[Outcome]:
        """Yield an outcome for each record of a file or folder, in a fixed order, without keeping any in memory.

        Raises SourceError where the source as a whole cannot be read.
        """


class RefusalError(Exception):
    """Raised while a record is converted: the record is refused for this reason."""

    def __init__(self, reason: Reason, why: str) -> None:
        super().__init__(f"{reason}: {why}")
        self.reason = reason
        self.why = why


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a source."""

    name: str
    """What the source calls it; hostile."""
    make: Callable[[str], Files]
    """Makes the files of a task of the given name. Raises RefusalError."""


def convert_all(records: Iterable[Record]) -> Iterator[Outcome]:
    """Yield the outcome of each record. A second record of a name is refused, whatever became of the first."""
    seen: set[str] = set()
    for record in records:
        try:
            name = encode_name(record.name)
            if name in seen:
                raise RefusalError("duplicate", "an earlier record of the source has this name")
            seen.add(name)
            files = record.make(name)
            _check(files)
        except ValueError as error:
            yield refused(record.name, "bad-name", str(error))
        except RefusalError as refusal:
            yield refused(record.name, refusal.reason, refusal.why)
        else:
            yield Converted(name, files)


def refused(name: str, reason: Reason, why: str) -> Refused:
    """Return a refusal whose texts fit into one line each, whatever the record holds."""
    return Refused(_short(name, _MAX_SHOWN_NAME), reason, _short(why, _MAX_WHY))


def _short(text: str, limit: int) -> str:
    return printable(text if len(text) <= limit else f"{text[: limit - 3]}...")


def _check(files: Files) -> None:
    """Refuse what could not be written to a folder, or packed. Raises RefusalError."""
    rules = Rules()
    total = 0
    for path, file in files.items():
        raw = path.encode("utf-8", "surrogateescape")
        try:
            plain = rules.checked(raw, raw)
            rules.count_entry(raw)
        except Conclusion as conclusion:
            raise RefusalError("unsafe-path", conclusion.headline) from None
        if plain != raw or not raw or any(len(part) > _MAX_PART for part in raw.split(b"/")):
            raise RefusalError("unsafe-path", f"{shown(raw)} is no plain path")
        if any(path[:place] in files for place, sign in enumerate(path) if sign == "/"):
            raise RefusalError("unsafe-path", f"{shown(raw)} lies below a file")
        total += len(file.content)
        if total > MAX_TASK_BYTES:
            raise RefusalError("too-large", f"its files have more than {MAX_TASK_BYTES >> 20} MiB")
