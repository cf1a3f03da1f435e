"""How many workers ``-n auto`` means where tasks are selected."""

from __future__ import annotations

import os

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.glue import extensions, options
from pytest_otval.glue.selection import split


def auto_workers(config: pytest.Config) -> int | None:
    """Return as many as tasks of a usual size fit this node; None leaves it to xdist.

    xdist asks before the session starts, when there is no plan yet, so the arguments are looked at here as well; what
    is wrong with them is told when the plan is made. $PYTEST_XDIST_AUTO_NUM_WORKERS wins, as it does with xdist.
    """
    if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS"):
        return None
    from pytest_otval.profile import load_profile
    from pytest_otval.sandbox.budget import node_budget

    try:
        cwd, places, stages = config.invocation_params.dir, extensions.places(config), extensions.stages(config)
        selection, _ = split(config.args, cwd, places, stages)
        if not selection:
            return None
        profile = load_profile(options.cluster_name(config), config.rootpath)
    except (OtvalUsageError, pytest.UsageError):
        return None
    return node_budget(profile.budget).workers
