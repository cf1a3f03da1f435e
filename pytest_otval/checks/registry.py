"""The checks by id, and how they are run over a task."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from pytest_otval.checks.context import CheckContext, CheckSettings
from pytest_otval.core import Conclusion, Finding, Severity
from pytest_otval.task.load import Task

FAMILIES = ("files", "entries", "text", "scripts", "docker", "rewards", "vacuous", "network")
"""The modules of this package that register checks, in the order they run."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a check found something, and what; the check itself adds its id, severity and fix."""

    path: str
    """Relative to the task folder."""
    message: str
    line: int | None = None
    severity: Severity | None = None
    """Where this case is worse or milder than the check's own severity."""
    fix: str = ""
    """Where the check's own fix does not fit."""


Look = Callable[[CheckContext], Iterator[Place]]


@dataclass(frozen=True, slots=True)
class Check:
    """One question about a task's files."""

    id: str
    severity: Severity
    family: str
    explains: str
    """Why it matters, in a sentence or two."""
    fix: str
    """What to do about it, one line."""
    look: Look

    def __call__(self, context: CheckContext) -> Iterator[Finding]:
        """Yield what the check finds in a task."""
        for place in self.look(context):
            severity = self.severity if place.severity is None else place.severity
            fix = place.fix or self.fix
            yield Finding(self.id, severity, _printable(place.message), _printable(place.path), place.line, fix)


_CHECKS: dict[str, Check] = {}


def check(id: str, *, severity: Severity, family: str, explains: str, fix: str) -> Callable[[Look], Look]:
    """Register a function that yields places as the check of that id."""

    def register(look: Look) -> Look:
        assert id not in _CHECKS, f"two checks are called {id}"
        _CHECKS[id] = Check(id, severity, family, explains, fix, look)
        return look

    return register


@cache
def all_checks() -> Mapping[str, Check]:
    """Return every check by id, in the order they run."""
    for family in FAMILIES:
        importlib.import_module(f"pytest_otval.checks.{family}")
    return MappingProxyType(_CHECKS)


def run_checks(
    task: Task, settings: CheckSettings | None = None, checks: Iterable[Check] | None = None
) -> tuple[Finding, ...]:
    """Return all findings about a task, those of its task.toml included, sorted by path, line and id.

    ``checks`` are ours where none are given.

    Raises Conclusion ``internal`` where a check crashes: a bug of ours is no answer about the task.
    """
    context = CheckContext(task, settings)
    findings = set(task.findings)
    for one in all_checks().values() if checks is None else checks:
        try:
            findings.update(one(context))
        except Conclusion:
            raise
        except Exception as error:
            headline = f"check {one.id} crashed on {task.path}: {type(error).__name__}: {error}"
            raise Conclusion("internal", headline) from error
    return tuple(sorted(findings, key=lambda found: (found.path, found.line or 0, found.check, found.message)))


def _printable(text: str) -> str:
    """Return a text that any terminal, XML or JSON writer takes: hostile names hold controls and broken UTF-8."""
    safe = text.encode("utf-8", "backslashreplace").decode()
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in safe)
