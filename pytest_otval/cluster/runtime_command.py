"""``python -m pytest_otval runtime``: the cache of runtimes. What an action needs is imported when it is called."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from pytest_otval.cluster.image_command import run_action

KEEP_DAYS = 1.0
"""What is younger is kept, unless the command line says otherwise."""
_ACTIONS = "pytest_otval.cluster.runtime_cache"
_HUB = "pytest_otval.cluster.runtime_hub"


def add_arguments(runtime: argparse.ArgumentParser, add_cluster: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the actions; ``add_cluster`` adds the option that names the cluster profile."""
    actions = runtime.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, help: str, function: str, module: str = _ACTIONS) -> argparse.ArgumentParser:
        parser = actions.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        parser.set_defaults(run=lambda arguments: run_action(module, function, arguments))
        return parser

    make = add("build", "install and save runtimes: of recipes, or those that a task's scripts ask for", "build")
    make.add_argument("what", nargs="+", metavar="NAME|TASK", help="a recipe, or a task's folder")
    make.add_argument("--force", action="store_true", help="make anew what is in the cache")
    add_cluster(make)

    listing = add("list", "list what the cache has, and the recipes that it does not have", "list_runtimes")
    listing.add_argument("--json", action="store_true", help="print JSON in place of text")

    shown = add("show", "show what the cache knows of a runtime", "show")
    shown.add_argument("runtime", metavar="ID|CHECKSUM", help="or its beginning; of one id the newest is shown")
    shown.add_argument("--files", action="store_true", help="print the checksum of every file")
    shown.add_argument("--json", action="store_true", help="print JSON in place of text")

    checked = add("verify", "read runtimes and find those that are damaged or not whole", "verify")
    checked.add_argument("runtimes", nargs="*", metavar="ID|CHECKSUM", help="these only (default: all)")
    checked.add_argument("--remove", action="store_true", help="remove what is not right")

    gc = add("gc", "remove the runtimes that no task names", "collect_garbage")
    gc.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="where all tasks are (default: all datasets)")
    gc.add_argument("--dry-run", action="store_true", help="remove nothing, say what would go")
    gc.add_argument("--keep-days", type=float, default=KEEP_DAYS, metavar="N", help="keep what is younger (default: 1)")

    sent = add("publish", "send runtimes of the cache to a dataset repository of the Hugging Face hub", "publish", _HUB)
    _add_repository(sent)

    got = add("download", "bring runtimes from a dataset repository of the Hugging Face hub", "download", _HUB)
    _add_repository(got)
    words = "those that the tasks at or below PATH name"
    got.add_argument("--for", dest="tasks", nargs="+", type=Path, default=[], metavar="PATH", help=words)


def _add_repository(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "repository", metavar="REPO", help="ORGANISATION/NAME; the runtimes are in its folder runtimes/"
    )
    parser.add_argument("runtimes", nargs="*", metavar="ID|CHECKSUM", help="these only (default: all)")
