"""The shell scripts that a verifier runs."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.scripts import is_shell
from pytest_otval.checks.shell import ShellScript, parse_shell
from pytest_otval.checks.verify_walk import UNKNOWN, WORKDIR, Walk, walk
from pytest_otval.task.load import Step

_MAX_SCRIPTS = 100
_MAX_BYTES = 1024 * 1024
"""Of all scripts of a task together; more is not looked into."""


@dataclass(frozen=True, slots=True, eq=False)
class VerifierScript:
    """A shell script that a step's verifier runs."""

    path: str
    """In the task."""
    step: Step
    text: str
    script: ShellScript

    def done(self) -> Walk | None:
        """Return what it does; test.sh and setup.sh start in the image's working directory, others who knows where."""
        return walk(self.text, WORKDIR if posixpath.basename(self.path) in ("test.sh", "setup.sh") else UNKNOWN)


@lru_cache(maxsize=2)
def verifier_scripts(context: CheckContext) -> tuple[VerifierScript, ...]:
    """Return, once each, test.sh, tests/setup.sh and the scripts of tests/ whose names these or others of them hold."""
    return () if context.windows else tuple(_scripts(context))


def _scripts(context: CheckContext) -> Iterator[VerifierScript]:
    seen: set[str] = set()
    left = _MAX_BYTES
    for step in context.steps:
        folders = context.test_folders(step)
        listed = (
            entry.path
            for folder in reversed(folders)
            for entry in context.tree.under(folder)
            if entry.kind == "file" and entry.path.endswith((".sh", ".bash"))
        )
        scripts = {posixpath.basename(path): path for path in islice(listed, _MAX_SCRIPTS)}
        pending = [context.test_script(step), *(f"{folder}/setup.sh" for folder in folders)]
        while pending:
            path = pending.pop(0)
            source = context.source(path) if path not in seen else None
            seen.add(path)
            if source is None or not source.whole or source.is_binary or not is_shell(source):
                continue
            left -= len(source.raw)
            if left < 0:
                return
            text = source.text
            pending.extend(other for name, other in scripts.items() if other not in seen and name in text)
            script = parse_shell(text)
            if script is not None:
                yield VerifierScript(path, step, text, script)
