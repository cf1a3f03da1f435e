"""``python -m pytest_otval judge``: how far a judge is to be believed, and what people say of its findings."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from pytest_otval.cluster.image_command import run_action

FLOOR = 0.7
"""Nine faults that were all found, and nine sound tasks without a false alarm, assure it."""


def add_arguments(judge: argparse.ArgumentParser, add_cluster: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the actions; ``add_cluster`` adds the option that names the cluster profile."""
    actions = judge.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, help: str, module: str) -> argparse.ArgumentParser:
        parser = actions.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        parser.set_defaults(run=lambda arguments: run_action(module, name, arguments))
        return parser

    measured = add(
        "calibrate",
        "put known faults into copies of what is sound, and count which of them a judge finds",
        "pytest_otval.cluster.judge_calibrate",
    )
    paths = "sound tasks, datasets of them, or run folders with honest attempts; nothing of them is run"
    measured.add_argument("paths", nargs="+", type=Path, metavar="PATH", help=paths)
    measured.add_argument("--judge", required=True, metavar="MODEL", help="who reviews; a model of the cluster profile")
    measured.add_argument("--base-url", default="", metavar="URL", help="its endpoint (default: the profile's)")
    measured.add_argument("--votes", type=_at_least_one, default=1, metavar="N", help="as --otval-votes (default: 1)")
    measured.add_argument("--rubric", type=Path, metavar="FILE", help="rubric in place of ours")
    measured.add_argument("--limit", type=_at_least_one, metavar="N", help="take so many tasks or attempts")
    floor = f"criteria whose findings are not assured to this degree decide nothing (default: {FLOOR:g})"
    measured.add_argument("--floor", type=_share, default=FLOOR, metavar="X", help=floor)
    measured.add_argument("--json", type=Path, metavar="FILE", help="write the counts as JSON, too")
    add_cluster(measured)

    label = add("label", "say whether a finding of a run is right", "pytest_otval.cluster.judge_label")
    label.add_argument("folder", metavar="RUN", help="the run folder, or `latest`")
    label.add_argument("id", metavar="NODE_ID", help="of the item; of an attempt that was reviewed, the attempt's")
    label.add_argument("criterion", metavar="CRITERION")
    label.add_argument("label", choices=("agree", "disagree"))
    label.add_argument("--note", default="", metavar="TEXT", help="why")
    label.add_argument("--by", default="", metavar="NAME", help="who says so (default: the user's name)")


def _at_least_one(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return number


def _share(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to 1")
    return number
