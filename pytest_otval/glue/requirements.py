"""What options need of this machine, looked at before the first item."""

from __future__ import annotations

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.glue.plan import PLAN


def require_clock(config: pytest.Config) -> None:
    """Raise UsageError where ``--otval-clock-shift`` finds no library that shifts a clock."""
    shift = str(config.getoption("--otval-clock-shift"))
    if PLAN not in config.stash or not shift:
        return
    from pytest_otval.trial.clock import clock_library

    try:
        clock_library()
    except Conclusion as conclusion:
        raise pytest.UsageError(f"--otval-clock-shift {shift}: {conclusion.headline}") from None
