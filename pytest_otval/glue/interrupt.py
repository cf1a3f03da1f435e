"""Ctrl-C that Python loses.

The exception of a signal that comes while Python forks, or collects garbage, is told and dropped. Each container is a
fork or two: of eight on a busy machine two were lost, and the next item began as if nobody had asked to stop.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType

import pytest


class Interrupt:
    """Ends the run before the next item, once somebody interrupted it."""

    def __init__(self) -> None:
        self._heard = False
        self._listens = False

    def pytest_sessionstart(self) -> None:
        """Listen, where nobody else does."""
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if usual and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._hear)
            self._listens = True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Listen no more."""
        if self._listens:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._listens = False

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._heard = True
        signal.default_int_handler(number, frame)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> None:
        """Raise KeyboardInterrupt where one was lost."""
        if self._heard:
            raise KeyboardInterrupt
