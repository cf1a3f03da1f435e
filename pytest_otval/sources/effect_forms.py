"""The forms in which a dataset is asked: without its patches, with all of them, and with each alone."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_otval.sources.effect import Answer, Effect, Key, Patches, read_answers
from pytest_otval.sources.files import SourceError
from pytest_otval.sources.making import make
from pytest_otval.sources.parts import Tasks
from pytest_otval.sources.patches import Patch
from pytest_otval.sources.provenance import Prepared
from pytest_otval.sources.selection import Selection

if TYPE_CHECKING:
    from pytest_otval.sources.dataset import PatchedDataset

BEFORE, AFTER = "before", "after"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Form:
    """Tasks with some of the patches."""

    name: str
    folder: Path
    applied: dict[str, Patches]
    """Of each task that a patch changes: which did."""


class Forms:
    """Makes forms of a dataset below its workspace, and asks stages of their tasks."""

    def __init__(self, dataset: PatchedDataset, selection: Selection, workers: str, say: Say) -> None:
        self._dataset = dataset
        self._selection = selection
        self._workers = workers
        self._say = say
        self._work = dataset.workspace.datasets / f".{dataset.name}.effect"
        self._asked = 0
        self._named = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"

    def make(self, name: str, patches: Sequence[Patch], only: Collection[str] | None = None) -> tuple[Form, Prepared]:
        """Make a form, of the tasks named ``only`` or of all. Raises SourceError, OtvalUsageError."""
        dataset = self._dataset
        target = self._work / name / dataset.name
        target.parent.mkdir(parents=True, exist_ok=True)
        origin, tasks = dataset.origin(self._selection)
        origin = replace(origin, recipe=f"{origin.recipe} {[patch.id for patch in patches]}")
        prepared = make(_only(tasks, only), patches, origin, dataset.folder, target, self._say)
        return Form(name, target, {task.name: task.patches for task in prepared.tasks if task.patches}), prepared

    def ask(self, form: Form, names: Iterable[str], stages: Sequence[str], repeat: int) -> Path:
        """Ask stages of tasks and return the run folder. What was asked before is not asked again."""
        arguments = [f"{form.folder}/tasks/{name}" for name in names]
        return self._pytest(form, arguments, stages, repeat, ["--otval-reuse"])

    def ask_again(self, form: Form, items: Sequence[Effect], repeat: int) -> dict[Key, Answer]:
        """Ask items anew, whatever is known of them, and return their answers."""
        arguments = [f"{form.folder}/tasks/{one.task}/task.toml::{one.stage}" for one in items]
        return read_answers(self._pytest(form, arguments, sorted({one.stage for one in items}), repeat, []))

    def _pytest(
        self, form: Form, arguments: Iterable[str], stages: Sequence[str], repeat: int, more: Sequence[str]
    ) -> Path:
        """Run a pytest of its own. Raises SourceError where it did not come to its end."""
        # Among the runs of the workspace, where answers are looked for when they are reused.
        self._asked += 1
        out = self._dataset.workspace.runs / f"{self._named}-{self._asked:02}-effect-{form.name}"
        # One line a task: a command line is not long enough for all tasks of a large dataset.
        file = form.folder.parent / "arguments"
        file.write_text("".join(f"{argument}\n" for argument in arguments))
        words = [f"@{file}", "-m", " or ".join(stages), f"--otval-out={out}", f"--otval-repeat={repeat}", *more]
        words += ["-q", "--tb=no", "-p", "no:cacheprovider", "-n", self._workers]
        command = [sys.executable, "-P", "-m", "pytest_otval.glue.start", *words]
        environment = {**os.environ, "OT_WORKSPACE": str(self._dataset.workspace.root)}
        # What pytest says goes to standard error: the tables are what this command prints.
        status = subprocess.run(command, check=False, stdout=2, env=environment).returncode
        # Failures are what this is about; anything else is no answer about the patches.
        if status not in (0, 1, 8):
            raise SourceError(f"pytest ended with status {status}: see above, and {out}; what is answered stays so")
        return out


def _only(tasks: Tasks, only: Collection[str] | None) -> Tasks:
    return tasks if only is None else (task for task in tasks if task.name in only)


def alone(patches: Sequence[Patch], patch: Patch) -> list[Patch]:
    """Return a patch after those whose files it says that it changes, too, and theirs."""
    known = {one.id: one for one in patches}
    wanted: set[str] = set()
    pending = [patch.id]
    while pending:
        id = pending.pop()
        if id not in wanted:
            wanted.add(id)
            pending += known[id].after
    return [one for one in patches if one.id in wanted]
