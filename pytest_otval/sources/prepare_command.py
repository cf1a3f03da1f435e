"""``patch.py prepare``: the tasks in the workspace, and what is told about them."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_otval.core import printable
from pytest_otval.sources.files import SourceError
from pytest_otval.sources.making import DATA, make, preparing, work_folder, write_settings
from pytest_otval.sources.patches import unused
from pytest_otval.sources.provenance import PROVENANCE, Origin, Prepared, read_prepared
from pytest_otval.sources.told import Told
from pytest_otval.task.pack import unpack_dataset

if TYPE_CHECKING:
    from pytest_otval.sources.dataset import PatchedDataset

_SHOWN = 20
"""Lines of a kind that are printed."""


def run(dataset: PatchedDataset, arguments: argparse.Namespace) -> int:
    """Carry it out. Raises OtvalUsageError, SourceError, Conclusion; KeyboardInterrupt."""
    target, selection = dataset.target, dataset.selection(arguments)
    try:
        with preparing(target):
            origin, tasks = dataset.origin(selection)
            prepared = _unchanged(target, origin, arguments.folders)
            if prepared is not None:
                write_settings(dataset.folder, target, target)
            else:
                told = Told(dataset.name)
                try:
                    prepared = make(tasks, dataset.patches, origin, dataset.folder, target, told.say)
                finally:
                    told.end()
            if arguments.folders and (target / DATA).exists():
                _unpack(target)
    except OSError as error:
        where = error.filename or target.parent
        raise SourceError(f"{where}: {error.strerror or error}: {_kept(target)}") from None
    except KeyboardInterrupt:
        raise SourceError(f"interrupted: {_kept(target)}") from None
    return _tell(dataset, prepared, selection.whole)


def _unchanged(target: Path, origin: Origin, folders: bool) -> Prepared | None:
    """Return what is there already if it was made from the same, and all of it is there."""
    prepared = read_prepared(target)
    if prepared is None or prepared.origin != origin:
        return None
    if (target / DATA).exists():
        there = {file.stem.rpartition("-")[2] for file in (target / DATA).iterdir()}
        return prepared if there == set(prepared.parts) else None
    return prepared if folders else None


def _kept(target: Path) -> str:
    """Say what an end before the end leaves."""
    parts = len(list((work_folder(target) / DATA).glob("part-*")))
    kept = f"{parts} made parts are kept, prepare goes on with them" if parts else "nothing is kept"
    return f"{kept}; what was prepared before is as it was" if target.exists() else kept


def _unpack(target: Path) -> None:
    part = target.with_name(f".{target.name}.folders")
    shutil.rmtree(part, ignore_errors=True)
    _, refused = unpack_dataset(target, part)
    if refused:
        raise SourceError(refused[0])
    shutil.copyfile(target / PROVENANCE, part / PROVENANCE)
    shutil.rmtree(target)
    part.rename(target)


def _tell(dataset: PatchedDataset, prepared: Prepared, whole: bool) -> int:
    """Print what a dataset came to; a patch of no use is an error only where all tasks were looked at."""
    applied = prepared.applied()
    for patch in dataset.patches:
        print(f"{patch.id} ({patch.fault}): {applied[patch.id]} tasks")
    reasons = Counter(one.reason for one in prepared.refused)
    for reason, count in reasons.most_common():
        print(f"refused, {printable(reason)}: {count}")
    for one in prepared.refused[:_SHOWN]:
        print(printable(f"  {one.name}: {one.why}"))
    trouble = [*prepared.trouble(), *(unused(dataset.patches, applied) if whole else ())]
    for line in trouble[:_SHOWN]:
        print(f"error: {line}")
    more = f" and {len(trouble) - _SHOWN} more" if len(trouble) > _SHOWN else ""
    print(f"{dataset.name}: {len(prepared.tasks)} tasks, {len(prepared.refused)} refused, {len(trouble)} errors{more}")
    if prepared.made < len(prepared.parts):
        print(f"{dataset.name}: {prepared.made} of {len(prepared.parts)} parts were made anew", file=sys.stderr)
    return 1 if trouble or (dataset.wants_all and prepared.refused) else 0
