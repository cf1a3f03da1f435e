"""``python -m pytest_otval dataset``: packing and unpacking datasets."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pytest_otval.task.packed.forms import FILE_OF, Form


def add_arguments(dataset: argparse.ArgumentParser) -> argparse._SubParsersAction[argparse.ArgumentParser]:
    """Add the actions; return what takes further ones."""
    actions = dataset.add_subparsers(dest="action", required=True, metavar="ACTION")
    pack = actions.add_parser("pack", help="write a dataset's tasks as one file")
    pack.add_argument("--to", choices=[str(form) for form in Form], required=True, help="the form of the file")
    unpack = actions.add_parser("unpack", help="write a packed dataset's tasks as folders")
    for parser, run in ((pack, _pack), (unpack, _unpack)):
        parser.add_argument("dataset", type=Path, metavar="DATASET", help="the folder that has the tasks")
        parser.add_argument(
            "out", type=Path, metavar="OUT_FOLDER", help="a new folder; its name is the new dataset's in node ids"
        )
        parser.set_defaults(run=run)
    return actions


def _pack(arguments: argparse.Namespace) -> int:
    from pytest_otval.task.pack import pack

    form = Form(arguments.to)
    count = pack(arguments.dataset.absolute(), form, arguments.out.absolute())
    file = arguments.out / FILE_OF[form]
    print(f"{file}: {count} tasks, {file.stat().st_size / 1e6:.1f} MB")
    return 0


def _unpack(arguments: argparse.Namespace) -> int:
    from pytest_otval.task.pack import unpack_dataset

    count, refused = unpack_dataset(arguments.dataset.absolute(), arguments.out.absolute())
    print(f"{arguments.out / 'tasks'}: {count} tasks")
    for line in refused:
        print(f"left out: {line}", file=sys.stderr)
    return 1 if refused else 0
