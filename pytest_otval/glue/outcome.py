"""What the reports of a run add up to: letters, a table, an exit status."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pytest_otval.glue.item import PROPERTY
from pytest_otval.glue.options import ERRORS_ONLY
from pytest_otval.report.results import row_of
from pytest_otval.report.summary import summarise, summary_lines
from pytest_otval.report.text import Style

UNSOLVED = ("passed", "u", "UNSOLVED")
LETTERS = {"blocked": ("blocked", "B", "BLOCKED"), "n/a": ("n/a", "n", "N/A")}


def answer_of(report: Any) -> dict[str, Any] | None:
    """Return the answer that a report carries."""
    for name, value in getattr(report, "user_properties", ()):
        if name == PROPERTY:
            return dict(value)
    return None


def decides(report: Any) -> bool:
    """Whether a report is the one of its item's phases that tells how the item ended."""
    return bool(report.when == "call" or (report.when == "setup" and not report.passed))


def letters(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Return category, letter and word of an answer that pytest only knows as a skip, or as passed."""
    if report.when == "call" and report.passed:
        answer = answer_of(report)
        return UNSOLVED if answer is not None and answer["class"] == "unsolved" else None
    answer = answer_of(report) if report.skipped and not hasattr(report, "wasxfail") else None
    return LETTERS.get(answer["verdict"]) if answer else None


class Tally:
    """Counts answers on the controller, once an item."""

    def __init__(self) -> None:
        self.answers: list[dict[str, Any]] = []
        self.unexpected = 0
        self.errors = 0
        self.inapplicable = 0
        self.other_failures = 0

    def add(self, report: pytest.TestReport) -> None:
        """Take a report of any phase."""
        answer = answer_of(report)
        if answer is None:
            self.other_failures += report.failed
            return
        if not decides(report):
            self.other_failures += report.failed
            return
        self.answers.append(answer)
        if report.failed:
            if answer["verdict"] == "error":
                self.errors += 1
            else:
                self.unexpected += 1
        elif report.skipped and not hasattr(report, "wasxfail"):
            if answer["verdict"] == "blocked":
                self.unexpected += 1
            else:
                self.inapplicable += 1

    def exit_status(self, status: int) -> int:
        """Return the run's exit status, given pytest's own; an interrupted or broken run keeps pytest's."""
        if not self.answers or status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return status
        if self.other_failures or self.unexpected:
            return int(pytest.ExitCode.TESTS_FAILED)
        if self.errors:
            return ERRORS_ONLY
        if self.inapplicable == len(self.answers):
            return int(pytest.ExitCode.NO_TESTS_COLLECTED)
        return int(pytest.ExitCode.OK)


def forget_quiet_phases(reporter: Any) -> None:
    """Drop the reports of phases that passed and said nothing: pytest looks through all of them for each failure.

    They are kept where ``--durations`` asks how long they took.
    """
    if reporter.config.getoption("durations", None) is None:
        quiet = reporter.stats.pop("", ())
        if kept := [report for report in quiet if getattr(report, "sections", ())]:
            reporter.stats[""] = kept


def _known_from(answer: dict[str, Any]) -> str:
    """Return which run an answer was taken from; empty where it was asked now, or by a cache of its stage."""
    source = answer["cached_from"]
    if source is None or not (source == "" or source.startswith("/")):
        return ""
    return "earlier runs" if source else "this run"


_MARKUP: dict[Style, dict[str, bool]] = {
    "": {},
    "title": {"bold": True},
    "good": {"green": True},
    "bad": {"red": True},
    "warn": {"yellow": True},
}


def write_summary(reporter: Any, tally: Tally, out: Path, planned: int | None) -> None:
    """Write the table of stages and verdicts, what to look at, and where the ledger lies.

    ``planned``: how many attempts each model was to make at each task.
    """
    if not tally.answers:
        return
    reporter.write_sep("=", "otval")
    for line in summary_lines(summarise(map(row_of, tally.answers)), out / "ledger", planned):
        reporter.write_line(line.text, **_MARKUP[line.style])
    known = Counter(_known_from(answer) for answer in tally.answers)
    for where in filter(None, sorted(known)):
        reporter.write_line(f"not asked again: {known[where]} answers of {where}")
