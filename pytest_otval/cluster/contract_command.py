"""``python -m pytest_otval contract``: look at contracts, compare them with each other and with what is here."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from pytest_otval.contract.compare import KINDS
from pytest_otval.contract.file import read_contract
from pytest_otval.contract.model import stages_of

AddCluster = Callable[[argparse.ArgumentParser], None]


def add_arguments(parser: argparse.ArgumentParser, add_cluster: AddCluster) -> None:
    """Add the command's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="tell what a contract fixes")
    show.add_argument("contract", type=Path, metavar="FILE")
    show.add_argument("--node-ids", action="store_true", help="print the ids of its items instead, one a line")
    show.set_defaults(run=_show)
    diff = actions.add_parser("diff", help="tell what changed, and what has to run again")
    diff.add_argument("contract", type=Path, metavar="FILE")
    diff.add_argument("other", type=Path, nargs="?", metavar="OTHER", help="another contract (default: what is here)")
    diff.set_defaults(run=_changes("diff"))
    verify = actions.add_parser("verify", help="exit with 1 where tasks, images, runtimes or settings changed")
    verify.add_argument("contract", type=Path, metavar="FILE")
    verify.set_defaults(run=_changes("verify"))
    update = actions.add_parser("update", help="take changes into a contract, class by class")
    update.add_argument("contract", type=Path, metavar="FILE")
    update.add_argument("--accept", action="append", choices=KINDS, default=[], help="a class of changes to take over")
    outcomes = "expect from now on what a run found not to apply (n/a)"
    update.add_argument("--outcomes", metavar="RUN", help=outcomes)
    update.set_defaults(run=_changes("update"))
    for one in (diff, verify, update):
        add_cluster(one)


def _changes(action: str) -> Callable[[argparse.Namespace], int]:
    """Return what carries out an action that looks at tasks; imported then, since it needs all of a machine."""

    def run(arguments: argparse.Namespace) -> int:
        from pytest_otval.cluster import contract_changes

        status: int = getattr(contract_changes, action)(arguments)
        return status

    return run


def _show(arguments: argparse.Namespace) -> int:
    contract = read_contract(arguments.contract)
    if arguments.node_ids:
        for item in contract.items():
            print(item.id)
        return 0
    print(f"{contract.count} items, digest {contract.digest}")
    for name, pin in sorted(contract.datasets.items()):
        counts = Counter(stage for _, stages in stages_of(pin) for stage in stages)
        shown = ", ".join(f"{stage} {count}" for stage, count in counts.items())
        print(f"{name}: {len(pin.tasks)} tasks: {shown}")
        for task, bad in sorted(pin.known_bad.items()):
            print(f"  {task}: known bad until {bad.expires} ({bad.owner}): {bad.reason}")
        for reason, count in sorted(Counter(r for one in pin.inapplicable.values() for r in one.values()).items()):
            print(f"  n/a is expected {count} times: {reason}")
        for what, why in pin.left_out.items():
            print(f"  left out: {what}: {why}")
    print(f"{len(contract.images)} images over {len({image.base for image in contract.images})} bases")
    for runtime in contract.runtimes:
        print(f"runtime {runtime.id}")
    settings = ", ".join(f"{name} {value}" for name, value in contract.settings.items()) or "the usual ones"
    print(f"settings: {settings}; uids: {contract.uids}")
    print("made with " + ", ".join(f"{name} {version}" for name, version in contract.versions.items()))
    if contract.submission is not None:
        given = {name: value for name, value in msgspec.to_builtins(contract.submission).items() if value}
        print("submission: " + ", ".join(f"{name} {value}" for name, value in given.items()))
    return 0
