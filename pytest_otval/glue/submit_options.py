"""Options that give a run to a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_otval.glue.numbers import positive_integer

SUBMIT_OPTIONS = ("submit", "partition", "cpus", "time", "shards", "wait", "dry_run", "attach")
"""Run settings of their names."""


def add_submit_options(group: Any) -> None:
    """Add them."""
    group.addoption(
        "--otval-submit",
        default="",
        metavar="PROFILE",
        help="run nothing here: submit the run to Slurm as the cluster profile says, and return",
    )
    group.addoption("--otval-partition", default="", metavar="NAME", help="partition (default: the profile's)")
    group.addoption(
        "--otval-cpus", type=positive_integer, default=0, metavar="N", help="cores of a job (default: as few as may be)"
    )
    group.addoption(
        "--otval-time",
        default="",
        metavar="HH:MM:SS",
        help="time limit of a job (default 04:00:00 or the most allowed)",
    )
    group.addoption(
        "--otval-shards",
        type=positive_integer,
        default=0,
        metavar="N",
        help="jobs (default: as many as recorded seconds ask for)",
    )
    group.addoption(
        "--otval-wait",
        action="store_true",
        default=False,
        help="with --otval-submit: stay and report what jobs answer, as if it ran here; Ctrl-C detaches",
    )
    group.addoption(
        "--otval-dry-run",
        action="store_true",
        default=False,
        help="with --otval-submit: write the script and the plan of shards, and submit nothing; with -m judge: tell "
        "what reviews would take, and ask nothing",
    )
    group.addoption(
        "--otval-attach",
        choices=("", "run", "contract"),
        default="",
        help="report what jobs answer that were submitted before: for `python -m pytest_otval attach RUN`",
    )


def runs_elsewhere(config: pytest.Config) -> bool:
    """Whether nothing is run in this process."""
    return bool(config.getoption("--otval-submit") or config.getoption("--otval-attach"))


def only_estimates(config: pytest.Config) -> bool:
    """Whether the run only tells what it would take."""
    return bool(config.getoption("--otval-dry-run")) and not runs_elsewhere(config)


def returns_at_once(config: pytest.Config) -> bool:
    """Whether the run goes on after this process."""
    stays = config.getoption("--otval-attach") or config.getoption("--otval-wait")
    return runs_elsewhere(config) and (bool(config.getoption("--otval-dry-run")) or not stays)
