"""In front of a submitted run: what its jobs answer becomes pytest's ordinary reports, as if it had run here.

An item whose answer has come goes through pytest's own protocol, in which it asks nothing. Leaving harms nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pytest_otval.cluster.watch import View, Watch, give_up, state_line
from pytest_otval.glue.contracting import write_line
from pytest_otval.glue.options import ERRORS_ONLY
from pytest_otval.glue.plan import ENGINE
from pytest_otval.glue.progress import begin_line, duration
from pytest_otval.glue.stop import STOPPED

LOOK_SECONDS = 5.0
"""Between two questions to Slurm: one call for all jobs of a run, which takes it milliseconds."""
READ_SECONDS, READ_SECONDS_A_FILE = 0.5, 0.01
"""Between two looks at the ledger, the more of its files there are: shared storage counts each as an access."""
SILENCE_SECONDS, QUIET_SECONDS = 10.0, 60.0
"""A line comes after the first if what it says has changed, and after the second anyway."""


def follow(session: pytest.Session, run: Path) -> None:
    """Report answers until all have come, or nothing more will. Raises OtvalUsageError, KeyboardInterrupt."""
    watch, told = Watch(run), _Told(session.config)
    items = {item.nodeid: item for item in session.items}
    ending = _Ending(run)
    session.config.pluginmanager.register(ending, "otval-front")
    progress = session.config.pluginmanager.getplugin("otval-progress")
    if progress is not None:
        session.config.pluginmanager.unregister(progress)
    looked = 0.0
    while True:
        _report(session, items, watch.lines())
        if not items:
            ending.over = True
            return
        if time.monotonic() - looked >= LOOK_SECONDS:
            view, looked = watch.look(), time.monotonic()
            told.tell(view)
            if view.over:
                _report(session, items, watch.lines())
                ending.over, ending.left, ending.spent = True, view.items - view.done, watch.over_budget()
                return
        if (run / STOPPED).exists() and not watch.over_budget():
            give_up(run, (run / STOPPED).read_text().strip())
        time.sleep(max(READ_SECONDS, READ_SECONDS_A_FILE * watch.files))


def _report(session: pytest.Session, items: dict[str, pytest.Item], lines: Iterable[dict[str, Any]]) -> None:
    for line in lines:
        item = items.pop(line["id"], None)
        if item is None:
            continue
        session.config.stash[ENGINE].give(line)
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)


class _Told:
    """Writes now and then how the run stands."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._last = ""
        self._spoke = -QUIET_SECONDS
        self._began = time.monotonic()
        self._done_before: int | None = None

    def tell(self, view: View) -> None:
        """Write a line if it is time for one."""
        if self._done_before is None:
            self._done_before = view.done
        now = time.monotonic()
        text = state_line(view)
        silence = now - self._spoke
        if silence < SILENCE_SECONDS or (text == self._last and silence < QUIET_SECONDS):
            return
        self._spoke, self._last = now, text
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            begin_line(reporter)
        write_line(self._config, f"otval: {text}{self._left(view, now)}")

    def _left(self, view: View, now: float) -> str:
        fresh = view.done - (self._done_before or 0)
        if not fresh or view.over:
            return ""
        return f"; about {duration((now - self._began) / fresh * (view.items - view.done))} left"


class _Ending:
    """Says how the run goes on where this process ends first, and keeps one that is not complete from being green."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self.over = False
        self.left = 0
        """Items that get no answer any more."""
        self.spent = ""
        """How the run's budget was."""

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Correct the exit status, which comes from the reports there are."""
        green = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED, ERRORS_ONLY)
        if self.left and (green or (self.spent and session.exitstatus == pytest.ExitCode.TESTS_FAILED)):
            # As where the same happens to a run on this machine.
            session.exitstatus = ERRORS_ONLY if self.spent else pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say how to come back, or what is missing."""
        from pytest_otval.glue.submitting import commands

        if self.left:
            why = self.spent or "their jobs were cancelled"
            terminalreporter.write_line(f"{self.left} items have no answer: {why}", red=True)
        if not self.over:
            terminalreporter.write_line("detached: the jobs go on without this process", yellow=True)
            for line in commands(self._run):
                terminalreporter.write_line(f"  {line}")
