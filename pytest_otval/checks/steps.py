"""Tasks of several steps: folders that no step uses."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.registry import Place, check
from pytest_otval.core import Severity


@check(
    "steps-unlisted",
    severity=Severity.WARNING,
    family="steps",
    explains="Harbor runs the steps that task.toml lists and looks at no other folder of steps/.",
    fix="list the step under [[steps]] in task.toml by the folder's name, or remove the folder",
)
def unlisted(context: CheckContext) -> Iterator[Place]:
    """Look for folders of steps/ that no [[steps]] names."""
    if context.task.config is None:
        return
    listed = {step.name for step in context.steps}
    for entry in context.tree.under("steps"):
        name = entry.path.removeprefix("steps/")
        if entry.kind == "folder" and "/" not in name and name not in listed and not name.startswith((".", "_")):
            yield Place(entry.path, f"no [[steps]] of task.toml is named {name}")


@check(
    "steps-root-instruction",
    severity=Severity.INFO,
    family="steps",
    explains="An agent of a task with steps gets the instruction of each step, and never the one beside task.toml.",
    fix="move what it says into the instructions of the steps",
)
def root_instruction(context: CheckContext) -> Iterator[Place]:
    """Look for an instruction.md beside a task.toml with steps."""
    if any(step.name for step in context.steps) and context.file("instruction.md") is not None:
        yield Place("instruction.md", "no agent sees it: the task has steps")
