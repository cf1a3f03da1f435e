"""Patches of what is wrong with files as such: line ends, first lines, modes."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.fixes import proposed, repairing
from pytest_otval.checks.registry import all_checks
from pytest_otval.sources.editor import PatchError, TaskEditor
from pytest_otval.sources.library.needs import findings
from pytest_otval.sources.patches import Patch

REPAIRED = ("text-crlf", "text-bom", "scripts-shebang", "scripts-exec-bit", "toml-deprecated")
"""Checks whose findings ``--otval-fix`` repairs."""


def safe_repairs() -> Patch:
    """Line ends, byte order marks, first lines, exec bits, old keys: what ``--otval-fix`` repairs."""

    def change(task: TaskEditor) -> None:
        repairs = repairing(all_checks().values())
        # A change may bring the next finding to light.
        for _ in range(len(REPAIRED) + 1):
            changes = list(proposed(CheckContext(task.task), findings(task, *REPAIRED), repairs))
            for _, one in changes:
                content = one.content if one.content is not None else task.data(one.path)
                if content is None:
                    raise PatchError(f"{one.path} is no plain file")
                task.write(one.path, content, one.executable)
            if not changes:
                return

    def needed(task: TaskEditor) -> bool:
        repairs = repairing(all_checks().values())
        return any(proposed(CheckContext(task.task), findings(task, *REPAIRED), repairs))

    return Patch("safe-repairs", "text", change, needed)


def executable_scripts() -> Patch:
    """Exec bits of the scripts that a trial starts: Harbor sets them, others that call scripts by their path do not."""

    def wanting(task: TaskEditor) -> Iterator[str]:
        context = CheckContext(task.task)
        for script in context.scripts():
            entry, source = context.file(script.path), context.source(script.path)
            if entry is not None and entry.path == script.path and not entry.executable and source and source.shebang:
                yield script.path

    def change(task: TaskEditor) -> None:
        for path in wanting(task):
            task.make_executable(path)

    return Patch("executable-scripts", "scripts-not-executable", change, lambda task: any(wanting(task)))
