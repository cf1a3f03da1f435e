"""What an item's report says when its xdist worker died: an error of the machine, not an answer about the task."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_otval.core import StageResult
from pytest_otval.glue.item import PROPERTY
from pytest_otval.glue.lines import for_reports
from pytest_otval.glue.plan import ENGINE, OUT
from pytest_otval.report.failure import failure_text


def report_killed_item(config: pytest.Config, nodeid: str, report: Any, sched: Any) -> None:
    """Report an item of ours whose worker died as an error in set-up, and write a ledger line for it.

    ``report`` is xdist's, which is neither of set-up nor of the call. It becomes that of a quiet teardown, where
    pytest-html and junit close an item. Items of others are left to xdist.
    """
    from pytest_otval.glue.schedule import TaskScheduling

    engine = config.stash.get(ENGINE, None)
    deaths = sched.deaths_of(nodeid) if isinstance(sched, TaskScheduling) else 1
    before = f", as {deaths - 1} did before it" if deaths > 1 else ""
    worker = report.node.gateway.id
    headline = f"worker {worker} died while it ran this{before}; the kernel's log tells if memory ran out"
    result = StageResult("killed", headline)
    line = engine.records.killed(nodeid, result) if engine is not None else None
    if line is None:
        return
    error = pytest.TestReport(
        nodeid=nodeid,
        location=report.location,
        keywords={},
        outcome="failed",
        longrepr=failure_text(line.as_dict(), config.stash[OUT]),
        when="setup",
        user_properties=[(PROPERTY, for_reports(line))],
        node=report.node,
    )
    config.hook.pytest_runtest_logreport(report=error)
    report.when, report.outcome, report.longrepr = "teardown", "passed", None
    report.user_properties = error.user_properties
