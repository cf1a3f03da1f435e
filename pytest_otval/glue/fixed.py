"""What ``--otval-fix`` changed, shown on the terminal as each task ends, with and without workers."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_otval.glue.outcome import answer_of
from pytest_otval.glue.progress import begin_line
from pytest_otval.report.text import clean, one_line


class ShowFixes:
    """Writes a unified diff for each file."""

    def __init__(self, reporter: Any) -> None:
        self._reporter = reporter

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Show the changes before an item's answer, once."""
        answer = answer_of(report) if report.when == "setup" else None
        fixes = answer.get("fixes", ()) if answer else ()
        if not fixes:
            return
        begin_line(self._reporter)
        for fix in fixes:
            self._show(report.nodeid, fix)

    def _show(self, nodeid: str, fix: dict[str, Any]) -> None:
        where = one_line(f"{nodeid.partition('/task.toml::')[0]}/{fix['path']} ({', '.join(fix['checks'])})")
        if fix["trouble"]:
            self._reporter.write_line(f"otval: not fixed: {where}: {one_line(fix['trouble'])}", yellow=True)
            return
        self._reporter.write_line(f"otval: fixed {where}")
        for line in clean(fix["diff"]).split("\n"):
            self._reporter.write_line(line, green=line.startswith("+"), red=line.startswith("-"))
