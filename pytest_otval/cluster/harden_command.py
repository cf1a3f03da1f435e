"""``python -m pytest_otval harden``: proposes how test scripts can do without what the agent may have changed."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from pytest_otval.checks.fixes import NotFixedError
from pytest_otval.cluster.environments import environments_below
from pytest_otval.core import OtvalUsageError, printable
from pytest_otval.harden.facts import NOTHING, Contents
from pytest_otval.harden.proposal import Proposal, Wishes, propose
from pytest_otval.runtimes.record import Reference, records
from pytest_otval.task.load import load_task
from pytest_otval.workspace import Workspace


def run_harden(arguments: argparse.Namespace) -> int:
    """Propose or make the changes and return the exit status: 1 where one could not be made.

    Raises OtvalUsageError.
    """
    if arguments.shebang and arguments.no_runtime:
        raise OtvalUsageError("--shebang needs a runtime: leave out --no-runtime")
    wishes = _wishes(arguments)
    tasks = changed = refused = 0
    with tempfile.TemporaryDirectory(prefix="otval-harden-") as scratch:
        for environment in environments_below(arguments.paths, Path(scratch)):
            if not environment.is_task:
                continue
            tasks += 1
            if environment.refused is not None:
                _say(environment.name, str(environment.refused))
                continue
            proposal = propose(load_task(environment.folder, environment.folder.parent.name), wishes)
            if not arguments.write:
                made = True
                _show(proposal, environment.name)
            elif environment.folder.is_relative_to(scratch) and proposal.texts:
                _say(environment.name, "is packed: unpack the dataset (python -m pytest_otval dataset unpack)")
                made = False
            else:
                made = _write(proposal, environment.folder, environment.name)
            changed += made and bool(proposal.texts)
            refused += not made
            for note in proposal.notes:
                _say(environment.name, note)
    if not tasks:
        raise OtvalUsageError("there is no task below the paths: give tasks, datasets, or folders that hold them")
    print(f"{tasks} tasks, {changed} {'changed' if arguments.write else 'to change'}", file=sys.stderr)
    return 1 if refused else 0


def _wishes(arguments: argparse.Namespace) -> Wishes:
    if arguments.no_runtime:
        return Wishes(None, may_have_runtime=False)
    cache = Workspace.from_environment().runtimes
    newest = next((one for one in records(cache) if one.name == arguments.runtime and one.python), None)
    missing = (
        f"it needs {arguments.runtime}, which is not in the cache with a Python of its own:"
        f" python -m pytest_otval runtime build {arguments.runtime}, or --no-runtime"
    )
    runtime = None if newest is None else Reference.of(newest)
    contents = NOTHING if newest is None else Contents.of(newest)
    return Wishes(runtime, own_shell=arguments.shebang, name=arguments.runtime, missing=missing, contents=contents)


def _write(proposal: Proposal, folder: Path, name: str) -> bool:
    try:
        proposal.write(folder)
    except NotFixedError as error:
        _say(name, f"not changed: {error}")
        return False
    for text in proposal.texts:
        print(printable(f"{name}/{text.path}"))
    return True


def _show(proposal: Proposal, name: str) -> None:
    """Print the diff, on a terminal with what steers one written out; ``patch`` takes it from a file or pipe."""
    for text in proposal.texts:
        for line in text.diff(name):
            if sys.stdout.isatty():
                print(printable(line.decode("utf-8", "replace").rstrip("\n").replace("\t", "    ")))
            else:
                sys.stdout.flush()
                sys.stdout.buffer.write(line)
    sys.stdout.flush()


def _say(name: str, what: str) -> None:
    print(printable(f"{name}: {what}"), file=sys.stderr)
