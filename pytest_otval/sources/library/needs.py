"""What shows that a patch is needed: findings of static checks."""

from __future__ import annotations

from pytest_otval.checks.registry import run_checks
from pytest_otval.core import Finding
from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.patches import Needed


def findings(task: TaskEditor, *ids: str) -> list[Finding]:
    """Return what static checks of these ids find and nobody allows."""
    # A check may find what has another id than its own, as those of task.toml do.
    return [one for one in run_checks(task.task) if one.check in ids and not one.allowed]


def found(*ids: str) -> Needed:
    """Return a condition: one of these checks finds something."""
    return lambda task: bool(findings(task, *ids))
