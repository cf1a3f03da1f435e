"""Files that a task must have."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.registry import Place, check
from pytest_otval.core import Severity

DEFINITIONS = ("Dockerfile", "docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")
"""Files of environment/ that define an image or several."""


@check(
    "files-required",
    severity=Severity.ERROR,
    family="files",
    explains="Harbor skips a folder without these files without a word, or cannot start its environment.",
    fix="add the file",
)
def required(context: CheckContext) -> Iterator[Place]:
    """Look for each instruction, the environment and each test script; loading the task asks for task.toml."""
    for step in context.steps:
        instruction = context.relative(step.instruction)
        if context.file(instruction) is None:
            yield Place(instruction, "there is no instruction")
        bundled = step.verifier_image is not None and step.verifier_image.bundled
        script = context.test_script(step)
        if not bundled and context.file(script) is None:
            yield Place(script, "there is no test script")
    yield from _environment(context)


def _environment(context: CheckContext) -> Iterator[Place]:
    config = context.task.config
    if config is None or config.environment.docker_image:
        return
    folder = context.tree.resolve("environment")
    if folder is None or folder.kind != "folder":
        fix = "add environment/Dockerfile, or set [environment].docker_image"
        yield Place("environment", "there is no environment/ and no docker_image", fix=fix)
    elif not any(context.file(f"environment/{name}") for name in DEFINITIONS):
        fix = "add environment/Dockerfile, or set [environment].docker_image"
        # Kept by a .gitkeep alone it is empty on purpose: some of Harbor's providers bring a machine of their own.
        kept = [posixpath.basename(entry.path) for entry in context.tree.under("environment")] == [".gitkeep"]
        severity = Severity.WARNING if kept else Severity.ERROR
        yield Place("environment", "nothing in environment/ defines an image", severity=severity, fix=fix)


@check(
    "files-instruction-empty",
    severity=Severity.ERROR,
    family="files",
    explains="An agent without an instruction cannot know what to do.",
    fix="write what the agent must do",
)
def instruction_empty(context: CheckContext) -> Iterator[Place]:
    """Look for instructions of nothing but blanks and comments."""
    for step in context.steps:
        path = context.relative(step.instruction)
        source = context.source(path)
        if source is not None and source.whole and not _said(source.text):
            yield Place(path, "the instruction says nothing")


def _said(text: str) -> str:
    """Return the instruction without the canary comments that Harbor strips from its top."""
    lines = text.split("\n")
    while lines and (not lines[0].strip() or _is_canary(lines[0].strip())):
        lines.pop(0)
    return "".join(lines).strip()


def _is_canary(line: str) -> bool:
    return "canary" in line.lower() and (line.startswith("#") or (line.startswith("<!--") and line.endswith("-->")))


@check(
    "files-solution-missing",
    severity=Severity.WARNING,
    family="files",
    explains="Without a reference solution nothing shows that the task can be solved: oracle is n/a.",
    fix='add solution/solve.sh, or say `oracle = "none"` under [otval] in dataset.toml',
)
def solution_missing(context: CheckContext) -> Iterator[Place]:
    """Look for each step's solve.sh, unless the dataset has none by intent."""
    if context.settings is not None and context.settings.oracle == "none":
        return
    name = "solve.bat" if context.windows else "solve.sh"
    paths = {f"{context.relative(step.solution)}/{name}" for step in context.steps}
    for path in sorted(paths):
        if context.file(path) is None:
            yield Place(path, "there is no reference solution")
