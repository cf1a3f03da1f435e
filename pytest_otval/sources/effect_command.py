"""``patch.py effect``: stages asked before and after the patches."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_otval.core import OtvalUsageError, printable
from pytest_otval.sources.effect import effects, markdown, page, run_stages, table, write_readme
from pytest_otval.sources.files import SourceError
from pytest_otval.sources.making import make
from pytest_otval.sources.told import Told

if TYPE_CHECKING:
    from pytest_otval.sources.dataset import PatchedDataset

HELP = "ask stages before and after the patches: exit with 1 where one regresses"
_SHOWN = 20
"""Lines of a kind that are printed."""


def add_options(effect: argparse.ArgumentParser) -> None:
    """Add its options, but for those of the tasks."""
    effect.add_argument("--stages", default="oracle,noop", metavar="STAGE,...", help="default: oracle,noop")
    effect.add_argument("-n", default="auto", metavar="N", help="workers (default: auto)")
    effect.add_argument("--html", type=Path, metavar="FILE", help="write a page, too")
    effect.add_argument("--readme", action="store_true", help="write the table into README.md beside dataset.toml")


def run(dataset: PatchedDataset, arguments: argparse.Namespace) -> int:
    """Carry it out. Raises OtvalUsageError, SourceError."""
    if not dataset.patches:
        raise OtvalUsageError(f"{dataset.name} has no patches")
    stages = arguments.stages.split(",")
    work = dataset.workspace.datasets / f".{dataset.name}.effect"
    shutil.rmtree(work, ignore_errors=True)
    told = Told(dataset.name)
    forms = {"before": (), "after": tuple(dataset.patches)}
    made = {}
    for form, patches in forms.items():
        tasks = dataset.tasks_of_source(dataset.selection(arguments))
        target = work / form / dataset.name
        target.parent.mkdir(parents=True)
        made[form] = make(tasks, patches, f"{dataset.recipe} {form}", dataset.folder, target, told.say)
    told.end()
    patched = {task.name: task.patches for task in made["after"].tasks if task.patches}
    if not patched:
        raise SourceError("no patch changes a task")
    for form in forms:
        # The others are the same tasks before and after.
        run_stages(work / form / dataset.name, sorted(patched), stages, work / f"run-{form}", arguments.n)
    found = effects(work / "run-before", work / "run-after")
    rows = table(found, patched)
    for line in markdown(rows):
        print(line)
    if arguments.html:
        arguments.html.write_text(page(dataset.name, rows, found))
    if arguments.readme:
        write_readme(dataset.folder / "README.md", markdown(rows))
    worse = [one for one in found if one.became == "regressed"]
    for one in worse[:_SHOWN]:
        print(printable(f"regressed: {one.task} {one.stage}: {one.before} -> {one.after}"))
    return 1 if worse else 0
