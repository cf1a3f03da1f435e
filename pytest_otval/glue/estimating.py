"""``-m judge --otval-dry-run``: what reviews would take. Nothing is run and nobody is asked."""

from __future__ import annotations

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.glue import extensions
from pytest_otval.glue.contracting import write_line
from pytest_otval.glue.item import StageItem
from pytest_otval.glue.plan import ENGINE
from pytest_otval.stages.spec import JUDGE_MARKS


def tell_estimates(session: pytest.Session) -> None:
    """Write a line for each stage of the judge. Raises UsageError where no item is the judge's."""
    from pytest_otval.stages.judge_estimate import Estimate

    config = session.config
    stages, engine = extensions.stages(config), config.stash[ENGINE]
    totals: dict[str, Estimate] = {}
    for item in session.items:
        if not isinstance(item, StageItem) or stages[item.name].mark not in JUDGE_MARKS:
            continue
        total = totals.setdefault(item.name, Estimate())
        try:
            totals[item.name] = total + engine.estimate(item.asked)
        except Conclusion as conclusion:
            write_line(config, f"otval: {item.nodeid}: {conclusion}")
    if not totals:
        words = "--otval-dry-run tells what would be submitted, or what a judge would take"
        raise pytest.UsageError(f"{words}: give --otval-submit PROFILE, or -m judge --otval-judge MODEL")
    for name, total in totals.items():
        write_line(config, f"otval: {name}: {total}")
    write_line(config, "otval: each fail takes one more answer, to which about as much is told; nothing was asked")
