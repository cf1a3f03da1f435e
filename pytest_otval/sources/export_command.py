"""``patch.py export``: what is published of a dataset."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_otval.core import OtvalUsageError
from pytest_otval.ledger import LATEST, find_run
from pytest_otval.report.results import read_results
from pytest_otval.report.select import select
from pytest_otval.sources.export import export, fates, push
from pytest_otval.sources.origin import read_recipe
from pytest_otval.task.source import source_of

if TYPE_CHECKING:
    from pytest_otval.sources.dataset import PatchedDataset

HELP = "write what is published: tasks, kept and archived, and the evidence"


def add_options(export: argparse.ArgumentParser) -> None:
    """Add its options."""
    export.add_argument("out", type=Path, metavar="DIR", help="a new folder")
    export.add_argument("--run", action="append", default=[], metavar="RUN", help="of these runs (default: latest)")
    export.add_argument("--select", metavar="EXPR", help="only tasks with a result that EXPR selects")
    export.add_argument("--push", metavar="REPO", help="put it into a dataset repository of the Hugging Face hub")


def run(dataset: PatchedDataset, arguments: argparse.Namespace) -> int:
    """Carry it out. Raises OtvalUsageError, SourceError, Conclusion."""
    results = [read_results(find_run(run)) for run in arguments.run or [LATEST]]
    rows = [row for one in results for row in one.rows if row.dataset == dataset.name]
    wanted = fates(rows)
    if arguments.select:
        chosen = {row.task for row, want in zip(rows, select(arguments.select, rows), strict=True) if want}
        wanted = {task: fate for task, fate in wanted.items() if task in chosen}
    if not wanted:
        raise OtvalUsageError(f"no task of {dataset.name} has an answer in these runs")
    licence = read_recipe(dataset.folder).source.licence
    of_ours = [one.where(row.dataset == dataset.name for row in one.rows) for one in results]
    counts = export(dataset.name, source_of(dataset.target), of_ours, wanted, licence, arguments.out)
    print(f"{arguments.out}: {counts['kept']} kept, {counts['archived']} archived")
    if arguments.push:
        push(arguments.out, arguments.push, f"{dataset.name}: {counts['kept']} tasks")
        print(f"pushed to {arguments.push}")
    return 0
