"""The larger commands of ``patch.py`` and their options. What carries one out is imported when it is called."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_otval.sources.dataset import PatchedDataset

AddCommand = Callable[[str, Callable[[argparse.Namespace], int], str], argparse.ArgumentParser]
"""Takes a command's name, what carries it out, and a line of help."""

_STAGES = "static,build,oracle,noop"
"""Those of a plain pytest run: a patch may give the answer away, too, which static and build see."""


def add_prepare(add: AddCommand, dataset: PatchedDataset) -> None:
    """Add ``prepare``."""
    prepare = add("prepare", partial(_prepare, dataset), "make the tasks in $OT_WORKSPACE/datasets")
    prepare.add_argument("--folders", action="store_true", help="as folders in place of Parquet files")
    dataset.add_selection(prepare)


def add_effect(add: AddCommand, dataset: PatchedDataset) -> None:
    """Add ``effect``."""
    text = "ask stages before and after the patches: exit with 1 where one regresses"
    effect = add("effect", partial(_effect, dataset), text)
    effect.add_argument("--stages", default=_STAGES, metavar="STAGE,...", help=f"default: {_STAGES}")
    effect.add_argument("--each", action="store_true", help="of tasks that several patches change: each alone, too")
    effect.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="attempts of oracle and noop (default: 1; to regress: 3)"
    )
    effect.add_argument("-n", default="auto", metavar="N", help="workers (default: auto)")
    effect.add_argument("--html", type=Path, metavar="DIR", help="write pages into this folder, too")
    effect.add_argument("--readme", action="store_true", help="write the tables into README.md beside dataset.toml")
    dataset.add_selection(effect)


def add_export(add: AddCommand, dataset: PatchedDataset) -> None:
    """Add ``export`` and ``push``."""
    export = add(
        "export", partial(_export, dataset), "write what is published: tasks, kept and archived, and the evidence"
    )
    export.add_argument("out", type=Path, metavar="DIR", help="a new folder")
    export.add_argument("--run", action="append", default=[], metavar="RUN", help="of these runs (default: latest)")
    export.add_argument("--select", metavar="EXPR", help="only tasks with a result that EXPR selects")
    export.add_argument("--folders", type=Path, metavar="DIR", help="write a dataset as Harbor reads it, too")
    export.add_argument(
        "--bundle", action="append", type=Path, default=[], metavar="DIR", help="name what images and runtimes it has"
    )
    export.add_argument("--push", metavar="REPO", help="put it into a dataset repository of the Hugging Face hub")
    export.add_argument("--private", action="store_true", help="with --push: make REPO if need be; it must be private")

    push = add(
        "push", partial(_push, dataset), "put what export wrote into a dataset repository of the Hugging Face hub"
    )
    push.add_argument("out", type=Path, metavar="DIR", help="what export wrote")
    push.add_argument("repository", metavar="REPO", help="dataset repository of the Hugging Face hub")
    push.add_argument("--private", action="store_true", help="make REPO if need be; it must be private")


def _prepare(dataset: PatchedDataset, arguments: argparse.Namespace) -> int:
    from pytest_otval.sources.prepare_command import run

    return run(dataset, arguments)


def _effect(dataset: PatchedDataset, arguments: argparse.Namespace) -> int:
    from pytest_otval.sources.effect_command import run

    return run(dataset, arguments)


def _export(dataset: PatchedDataset, arguments: argparse.Namespace) -> int:
    from pytest_otval.sources.export_command import run

    return run(dataset, arguments)


def _push(dataset: PatchedDataset, arguments: argparse.Namespace) -> int:
    from pytest_otval.sources.export_command import run_push

    return run_push(dataset, arguments)
