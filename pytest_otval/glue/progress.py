"""How far a run is: now and then one line with counts and the time that is left.

Between pytest's own letters there is room for whole lines only: they read well in the log of a CI job, need no terminal
and no cursor, and look the same with and without workers. The controller sees every report, also those of workers.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from pytest_otval.glue.outcome import answer_of, decides
from pytest_otval.glue.plan import PLAN

LONGEST_SILENCE, SHORTEST_SILENCE = 60.0, 10.0
"""Seconds. A line comes after the first, or after the second where a tenth of the run is done since the last line."""


class Progress:
    """Writes the lines, in a run that has items of ours."""

    def __init__(self, reporter: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._reporter = reporter
        self._clock = clock
        self._session: pytest.Session | None = None
        self._verdicts: Counter[str] = Counter()
        self._done = self._told = 0
        self._began = self._spoke = clock()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Start the clock: what came before was collection."""
        self._session = session if PLAN in session.config.stash else None
        self._began = self._spoke = self._clock()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count an item that has ended, after pytest showed it."""
        if not decides(report):
            return
        self._done += 1
        answer = answer_of(report)
        self._verdicts[answer["verdict"] if answer else "other tests"] += 1
        total = self._session.testscollected if self._session else 0
        if self._done < total and self._is_time(total):
            self._write(total)

    def _is_time(self, total: int) -> bool:
        silence = self._clock() - self._spoke
        return silence >= LONGEST_SILENCE or (silence >= SHORTEST_SILENCE and (self._done - self._told) * 10 >= total)

    def _write(self, total: int) -> None:
        now = self._clock()
        left = (now - self._began) / self._done * (total - self._done)
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self._verdicts.items())
        share = self._done * 100 // total
        self._spoke, self._told = now, self._done
        begin_line(self._reporter)
        self._reporter.write_line(f"otval: {self._done} of {total} ({share} %): {counts}; about {duration(left)} left")


def begin_line(reporter: Any) -> None:
    """End the line of pytest's letters, if one has begun."""
    reporter.ensure_newline()
    if reporter.config.get_terminal_writer().width_of_current_line:
        reporter.line("")


def duration(seconds: float) -> str:
    """Return a duration as a person says it, in two units at most."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
