"""``python -m pytest_otval dataset inventory``: what datasets there are and how they stand, in datasets/README.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_otval.core import OtvalUsageError, printable

if TYPE_CHECKING:
    from pytest_otval.sources.validated import Validated

_CONTRACTS = "contracts"
"""The folder beside ``datasets`` that has published contracts."""


def add_inventory(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    inventory = actions.add_parser("inventory", help="tell how all datasets stand, or write it into their README.md")
    way = inventory.add_mutually_exclusive_group()
    write = "renew the records of these (default: those of which this workspace has as many answers), and README.md"
    way.add_argument("--write", nargs="*", metavar="NAME", help=write)
    way.add_argument("--check", action="store_true", help="exit with 1 where README.md is not what the files say")
    folder = "the folder of datasets (default: ./datasets)"
    inventory.add_argument("--datasets", type=Path, default=Path("datasets"), metavar="DIR", help=folder)
    inventory.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Carry it out; exit status 1 where README.md is out of date. Raises OtvalUsageError."""
    from pytest_otval.sources.inventory import MARK, README, inventory_lines

    datasets: Path = arguments.datasets.absolute()
    readme = datasets / README
    if arguments.check:
        return _check(datasets, readme)
    renewed = _renewed(datasets, arguments.write or [])
    if arguments.write is None:
        for line in inventory_lines(datasets, renewed):
            print(line)
        return 0
    from pytest_otval.report.markdown import put_between_marks
    from pytest_otval.sources.validated import write_record

    for name, record in renewed.items():
        write_record(datasets / name, record)
    put_between_marks(readme, MARK, inventory_lines(datasets))
    print(f"written: {readme}")
    return 0


def _check(datasets: Path, readme: Path) -> int:
    from pytest_otval.report.markdown import between_marks
    from pytest_otval.sources.inventory import MARK, inventory_lines

    if between_marks(readme, MARK, inventory_lines(datasets)) == readme.read_text(encoding="utf-8"):
        return 0
    print(f"{readme} is out of date: python -m pytest_otval dataset inventory --write", file=sys.stderr)
    return 1


def _renewed(datasets: Path, names: list[str]) -> dict[str, Validated]:
    """Return the records that the workspace renews: of these datasets, else of those that it knows no worse."""
    from pytest_otval.sources.inventory import dataset_folders
    from pytest_otval.sources.validated import Answers, read_record
    from pytest_otval.workspace import Workspace

    folders = {folder.name: folder for folder in dataset_folders(datasets)}
    answers = Answers(Workspace.from_environment(), [datasets.parent / _CONTRACTS])
    renewed = {}
    for name in names or folders:
        record = answers.of(folders[name]) if name in folders else None
        if record is None or not record.stages:
            if names:
                raise OtvalUsageError(f"this workspace has no answer about {name!r}: run pytest {datasets / name}")
            continue
        known = None if names else read_record(folders[name])
        if known is not None and known.answers > record.answers:
            about = f"{known.answers} answers are recorded, this workspace has {record.answers}"
            print(printable(f"{name}: {about}; `--write {name}` records these all the same"), file=sys.stderr)
        else:
            renewed[name] = record
    return renewed
