"""Findings that somebody allows in many tasks: the entries of ``[[otval.allow]]`` in dataset.toml."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from pytest_otval.core import Severity
from pytest_otval.task.lines import KeyPath

KEYS = ("check", "tasks", "reason", "owner", "expires")
EXAMPLE = '{check = "ID", tasks = "GLOB", reason = "...", owner = "...", expires = 2030-01-31}'

_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Allowance:
    """Findings of one check that are allowed in the tasks whose names match."""

    check: str
    tasks: str
    """Shell pattern."""
    reason: str
    owner: str
    expires: datetime.date
    """The last day it applies."""
    line: int | None = None
    """Of dataset.toml."""

    def covers(self, task: str) -> bool:
        """Whether it speaks of a task."""
        return fnmatchcase(task, self.tasks)

    @property
    def names_one(self) -> bool:
        """Whether it speaks of one task by its name."""
        return not _WILD & set(self.tasks)

    def __str__(self) -> str:
        return f"dataset.toml{'' if self.line is None else f':{self.line}'} ({self.owner} until {self.expires})"


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with an entry; whatever it is, the entry allows nothing."""

    check: str
    severity: Severity
    path: KeyPath
    message: str
    fix: str = ""


def read_allowances(value: Any, path: KeyPath, today: datetime.date) -> Iterator[Allowance | Trouble]:
    """Yield what the value of ``allow`` says, entry by entry; lines are the caller's to add."""
    entries = value if isinstance(value, list) else [value]
    for index, entry in enumerate(entries):
        yield _read(entry, (*path, index) if isinstance(value, list) else path, today)


def _read(entry: Any, path: KeyPath, today: datetime.date) -> Allowance | Trouble:
    if not isinstance(entry, dict) or not _is_whole(entry):
        needs = f"needs {', '.join(KEYS[:-1])} and a date {KEYS[-1]}"
        return Trouble("ds-invalid", Severity.ERROR, path, needs, f"write {EXAMPLE}")
    if unknown := sorted(entry.keys() - set(KEYS)):
        fix = f"known are {', '.join(KEYS)}"
        return Trouble("ds-unknown-field", Severity.ERROR, (*path, unknown[0]), "there is no such setting", fix)
    found = Allowance(**{"reason": "", **entry})
    if not found.reason.strip():
        return Trouble("allow-no-reason", Severity.WARNING, path, "allows nothing without a reason", "say why")
    if found.expires < today:
        message = f"expired on {found.expires}: {found.check} is no longer allowed"
        return Trouble("allow-expired", Severity.WARNING, path, message, f"{found.owner}: repair it, or set a new date")
    return found


def _is_whole(entry: Mapping[str, Any]) -> bool:
    texts = all(isinstance(entry.get(key), str) and entry[key] for key in ("check", "tasks", "owner"))
    # A reason may be missing altogether: that has a finding of its own.
    reason = isinstance(entry.get("reason", ""), str)
    return texts and reason and type(entry.get("expires")) is datetime.date
