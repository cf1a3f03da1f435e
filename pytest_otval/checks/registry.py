"""The checks by id, and how they are run over a task."""

from __future__ import annotations

import gc
import importlib
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

from pytest_otval.checks.allow import DatasetAllows, with_allowed
from pytest_otval.checks.context import CheckContext, CheckSettings
from pytest_otval.checks.python_ast import forget_modules
from pytest_otval.core import Conclusion, Finding, Severity, printable
from pytest_otval.task.load import Task

FAMILIES = (
    "files",
    "entries",
    "text",
    "scripts",
    "docker",
    "docker_hygiene",
    "docker_packages",
    "docker_git",
    "compose",
    "leaks",
    "rewards",
    "vacuous",
    "verify_trust",
    "verify_network",
    "python_tests",
    "instruction",
    "unsaid",
    "toml",
    "steps",
    "separate",
    "solution",
    "solution_runs",
)
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
class Change:
    """What a repair makes of one file of the task; None leaves content or mode as they are."""

    path: str
    """Relative to the task folder: a regular file, reached through no link."""
    content: bytes | None = None
    executable: bool | None = None


Repair = Callable[[CheckContext, Finding], Iterator[Change]]
"""Yields the changes that do away with a finding, where they surely change nothing else that counts."""


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
    repair: Repair | None = None
    """What ``--otval-fix`` does about it; None where a person has to."""

    def __call__(self, context: CheckContext) -> Iterator[Finding]:
        """Yield what the check finds in a task."""
        return map(self._finding, self.look(context))

    def _finding(self, place: Place) -> Finding:
        severity = self.severity if place.severity is None else place.severity
        fix = place.fix or self.fix
        return Finding(self.id, severity, printable(place.message), printable(place.path), place.line, fix)


_CHECKS: dict[str, Check] = {}


def check(
    id: str, *, severity: Severity, family: str, explains: str, fix: str, repair: Repair | None = None
) -> Callable[[Look], Look]:
    """Register a function that yields places as the check of that id."""

    def register(look: Look) -> Look:
        assert id not in _CHECKS, f"two checks are called {id}"
        _CHECKS[id] = Check(id, severity, family, explains, fix, look, repair)
        return look

    return register


@cache
def all_checks() -> Mapping[str, Check]:
    """Return every check by id, in the order they run."""
    for family in FAMILIES:
        importlib.import_module(f"pytest_otval.checks.{family}")
    return MappingProxyType(_CHECKS)


def run_checks(
    task: Task,
    settings: CheckSettings | None = None,
    checks: Iterable[Check] | None = None,
    allowed: DatasetAllows | None = None,
    only: Collection[str] | None = None,
) -> tuple[Finding, ...]:
    """Return all findings about a task, those of its task.toml included, sorted by path, line and id.

    ``checks`` are ours where none are given; ``allowed`` is what the dataset allows; ``only`` are the ids of findings
    that are asked for, None: all.

    Raises Conclusion ``internal`` where a check crashes: a bug of ours is no answer about the task.
    """
    context = CheckContext(task, settings)
    asked = list(all_checks().values() if checks is None else checks)
    collects = gc.isenabled()
    gc.disable()  # nearly all that is made lives until the task has been looked at
    try:
        found = _found(context, asked)
        if only is not None and not any(one.check in only for one in found):
            return ()
        said = with_allowed(context, found, {one.id for one in asked}, allowed or DatasetAllows())
        wanted = said if only is None else (one for one in said if one.check in only)
        return tuple(
            sorted(map(_shown, wanted), key=lambda found: (found.path, found.line or 0, found.check, found.message))
        )
    finally:
        forget_modules()
        if collects:
            gc.enable()


def _found(context: CheckContext, asked: Iterable[Check]) -> set[Finding]:
    findings = set(context.task.findings)
    with warnings.catch_warnings():
        # What Python says about a task's source is no word of ours, and must not depend on how pytest was started.
        warnings.simplefilter("ignore")
        for one in asked:
            try:
                findings.update(one(context))
            except Conclusion:
                raise
            except Exception as error:
                headline = f"check {one.id} crashed on {context.task.path}: {type(error).__name__}: {error}"
                raise Conclusion("internal", headline) from error
    return findings


def _shown(found: Finding) -> Finding:
    """Return a finding whose words of a task, if it has any that no check cleaned, can be shown."""
    if not found.allowed and not found.check.startswith("allow-"):
        return found
    return replace(
        found,
        message=printable(found.message),
        path=printable(found.path),
        allowed=printable(found.allowed),
        allowed_by=printable(found.allowed_by),
    )
