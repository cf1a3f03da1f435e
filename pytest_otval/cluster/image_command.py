"""``python -m pytest_otval image``: the store of images. What an action needs is imported when it is called."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from pytest_otval.core import OtvalUsageError

_STORE, _PLANS = "pytest_otval.cluster.image_store", "pytest_otval.cluster.image_plans"


def add_arguments(image: argparse.ArgumentParser, add_cluster: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the actions; ``add_cluster`` adds the option that names the cluster profile."""
    actions = image.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, help: str, module: str, function: str, cluster: bool = False) -> argparse.ArgumentParser:
        parser = actions.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        parser.set_defaults(run=lambda arguments: run_action(module, function, arguments))
        if cluster:
            add_cluster(parser)
        return parser

    def add_json(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON in place of text")

    add_json(
        add("list", "list what the store has, and sums against [quota] of the profile", _STORE, "list_images", True)
    )

    show = add("show", "show what the store knows of an image", _STORE, "show")
    show.add_argument("key", metavar="KEY", help="the key, or its beginning where no other begins so")
    show.add_argument("--log", action="store_true", help="print what its build said")
    add_json(show)

    verify = add("verify", "read images and find those that are damaged or not whole", _STORE, "verify")
    verify.add_argument("keys", nargs="*", metavar="KEY", help="these only (default: all)")
    verify.add_argument("--remove", action="store_true", help="remove what is not right, so that it is made again")

    gc = add("gc", "remove the images that no task needs", _PLANS, "collect_garbage", True)
    gc.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="where all tasks are (default: all datasets)")
    gc.add_argument("--dry-run", action="store_true", help="remove nothing, say what would go")
    gc.add_argument("--keep-days", type=float, default=1.0, metavar="N", help="keep what is younger (default: 1)")
    gc.add_argument("--force", action="store_true", help="go on where the base of a task cannot be found out now")

    plan = add("plan", "say which images tasks need, and which tasks get none", _PLANS, "plan", True)
    plan.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a task, a dataset, a Dockerfile's folder")
    plan.add_argument("--dry-run", action="store_true", help="ask no registry: an unknown base stands for itself")
    add_json(plan)

    pull = add("pull", "get base images into the store", _PLANS, "pull", True)
    pull.add_argument("names", nargs="+", metavar="NAME", help="as a Dockerfile's FROM names it")

    export = add("export", "write images of the store for others, as they were built", _STORE, "export")
    export.add_argument("keys", nargs="+", metavar="KEY", help="the key, or its beginning where no other begins so")
    form = export.add_mutually_exclusive_group(required=True)
    form.add_argument("--bundle", type=Path, metavar="FOLDER", help="a new folder: images, records and checksums")
    form.add_argument("--sif", type=Path, metavar="FILE", help="a new file that Apptainer runs anywhere")

    take = add("import", "take a bundle, a .sqfs or a .sif file into the store", _STORE, "take")
    take.add_argument("path", type=Path, metavar="PATH", help="a bundle's folder, or the file")

    diff = add("diff", "say what makes two images differ: settings, packages, files", _STORE, "diff")
    diff.add_argument("before", metavar="KEY", help="an image")
    diff.add_argument("after", metavar="KEY", help="another")
    add_json(diff)

    add("prepare", "make what the cluster profile's [setup] prepare names", "pytest_otval.cluster.prepare", "run", True)


def run_action(module: str, function: str, arguments: argparse.Namespace) -> int:
    """Import an action and carry it out; return its exit status. Raises OtvalUsageError where a path is at fault."""
    action: Callable[[argparse.Namespace], int] = getattr(importlib.import_module(module), function)
    try:
        status = action(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough; Python would complain again when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        raise OtvalUsageError(f"{error.filename or arguments.action}: {error.strerror or error}") from None
    return status
