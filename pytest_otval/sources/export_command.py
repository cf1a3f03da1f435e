"""``patch.py export``: what is published of a dataset."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_otval.core import OtvalUsageError
from pytest_otval.ledger import LATEST, find_run
from pytest_otval.report.results import Results, read_results
from pytest_otval.report.select import select
from pytest_otval.sources.export import CARD, Export, export, push
from pytest_otval.sources.fates import fates
from pytest_otval.sources.origin import read_recipe
from pytest_otval.task.index import is_prepared
from pytest_otval.task.source import source_of

if TYPE_CHECKING:
    from pytest_otval.sources.dataset import PatchedDataset


def run(dataset: PatchedDataset, arguments: argparse.Namespace) -> int:
    """Carry it out. Raises OtvalUsageError, SourceError, Conclusion."""
    if arguments.private and not arguments.push:
        raise OtvalUsageError("--private says how to --push: name the repository")
    if not is_prepared(dataset.target):
        raise OtvalUsageError(f"{dataset.name} is not prepared: patch.py prepare")
    results = [_of_dataset(read_results(find_run(word)), dataset.name) for word in arguments.run or [LATEST]]
    rows = [row for one in results for row in one.rows]
    wanted = fates(rows)
    if arguments.select:
        chosen = {row.task for row, want in zip(rows, select(arguments.select, rows), strict=True) if want}
        wanted = {task: fate for task, fate in wanted.items() if task in chosen}
    if not wanted:
        raise OtvalUsageError(f"no task of {dataset.name} has an answer in these runs")
    # Of tasks that are not published nothing is said.
    results = [one.where(row.task in wanted for row in one.rows) for one in results]
    origin = read_recipe(dataset.folder).source
    what = Export(dataset.name, dataset.folder, source_of(dataset.target), results, wanted, origin)
    tasks = export(what, arguments.out, arguments.folders, arguments.bundle)
    kept = sum(one.kept for one in tasks)
    print(f"{arguments.out}: {kept} kept, {len(tasks) - kept} archived")
    return _push(dataset, arguments.out, arguments.push, arguments.private) if arguments.push else 0


def run_push(dataset: PatchedDataset, arguments: argparse.Namespace) -> int:
    """Carry out ``push``, which goes on where an earlier one broke off. Raises OtvalUsageError, Conclusion."""
    if not (arguments.out / CARD).is_file():
        raise OtvalUsageError(f"{arguments.out} is nothing that export wrote: it has no {CARD}")
    return _push(dataset, arguments.out, arguments.repository, arguments.private)


def _push(dataset: PatchedDataset, folder: Path, repository: str, private: bool) -> int:
    push(folder, repository, f"Tasks of {dataset.name}, and the evidence", private)
    print(f"pushed to {repository}")
    return 0


def _of_dataset(results: Results, name: str) -> Results:
    return results.where(row.dataset == name for row in results.rows)
