"""``python -m pytest_otval upstream``: bring the pinned repositories of others, and look at them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_otval.sources.files import SourceError
from pytest_otval.workspace import Workspace

if TYPE_CHECKING:
    from pytest_otval.sources.upstream import Clone


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    helps = {
        "setup": "clone the pinned commit of each repository that is not there",
        "status": "say which are there and as pinned; asks no network",
        "update": "bring those that are not as pinned, and say which upstreams moved on; none is followed",
    }
    commands = parser.add_subparsers(dest="upstream_command", required=True, metavar="COMMAND")
    for name, text in helps.items():
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("names", nargs="*", metavar="NAME", help="these (default: all that are pinned)")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    with resources.as_file(resources.files("pytest_otval") / "data" / "upstream.toml") as pins:
        return run_upstream(arguments.upstream_command, arguments.names, pins, Workspace.from_environment().root)


def run_upstream(command: str, names: list[str], pins: Path, workspace: Path) -> int:
    """Run a command and print a line for each repository. Exit status 1 where one is not as pinned afterwards."""
    from pytest_otval.sources.upstream import clones, load_pins

    actions: dict[str, Callable[[Clone], str]] = {"setup": _set_up, "status": _status, "update": _update}
    failed = 0
    for clone in clones(load_pins(pins), workspace, names):
        try:
            said = actions[command](clone)
        except (SourceError, OSError) as error:
            failed += 1
            said = str(error)
        print(f"{clone.name}: {said}", flush=True)
    return 1 if failed else 0


def _status(clone: Clone) -> str:
    if problem := clone.problem():
        raise SourceError(f"{problem}: run `python -m pytest_otval upstream update {clone.name}`")
    return f"as pinned, {clone.path}"


def _set_up(clone: Clone) -> str:
    problem = clone.problem()
    if not problem:
        return f"as pinned, {clone.path}"
    if clone.path.exists():
        raise SourceError(f"{problem}: run `python -m pytest_otval upstream update {clone.name}`, which replaces it")
    clone.make()
    return f"cloned {clone.pin.commit[:12]} to {clone.path}"


def _update(clone: Clone) -> str:
    if clone.problem():
        clone.make()
    head = clone.head()
    if head == clone.pin.commit:
        return "as pinned, and upstream has nothing newer"
    return f"as pinned; upstream moved on to {head[:12]}, which is not followed (pinned: {clone.pin.commit[:12]})"
