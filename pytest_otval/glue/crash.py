"""What an item's report says when its xdist worker died: an error of the machine, not an answer about the task."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_otval.core import StageResult
from pytest_otval.glue.item import PROPERTY
from pytest_otval.glue.lines import for_reports
from pytest_otval.glue.plan import ENGINE, OUT
from pytest_otval.report.failure import failure_text


def report_killed_item(config: pytest.Config, nodeid: str, report: Any) -> None:
    """Report an item of ours whose worker died as an error in set-up, and write a ledger line for it.

    ``report`` is xdist's, which is neither of set-up nor of the call. It becomes that of a quiet teardown, where
    pytest-html and junit close an item. Items of others are left to xdist.
    """
    engine = config.stash.get(ENGINE, None)
    headline = f"worker {report.node.gateway.id} died while it ran this; the kernel's log tells if memory ran out"
    result = StageResult("killed", headline)
    line = engine.record_killed(nodeid, result) if engine is not None else None
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
