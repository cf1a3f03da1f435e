"""What shows that a patch is needed: findings of static checks."""

from __future__ import annotations

from pytest_otval.checks.registry import all_checks, run_checks
from pytest_otval.core import Finding
from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.patches import Needed


def findings(task: TaskEditor, *ids: str) -> list[Finding]:
    """Return what static checks of these ids find and nobody allows."""
    # What is found in task.toml is found where it is read, and by no check.
    asked = [check for id, check in all_checks().items() if id in ids]
    return [one for one in run_checks(task.task, checks=asked, only=ids) if not one.allowed]


def found(*ids: str) -> Needed:
    """Return a condition: one of these checks finds something."""
    return lambda task: bool(findings(task, *ids))
