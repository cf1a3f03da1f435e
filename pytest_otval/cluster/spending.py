"""What the jobs of a run spend on models: each tells the others while it runs, by one small file on shared storage.

Processes of a job count in the run folder on their node, as those of any run do. The job carries the sums of what is
new to shared storage, and what other jobs spent to its node, where its processes find it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pytest_otval.cluster.request import Models
from pytest_otval.llm.budget import Budget
from pytest_otval.llm.chat import BudgetSpentError

READ_SECONDS_A_FILE = 0.1
"""Between two looks at what other jobs spent, for each of their files: shared storage counts each as an access."""


def budget_of(run: Path, models: Models) -> Budget:
    """Return the budget of a submitted run."""
    return Budget(run, models.budget_tokens or None, models.budget_usd or None)


def over_budget(budget: Budget) -> str:
    """Return how a budget was spent; empty where more may be spent, or where that cannot be told now."""
    try:
        with suppress(OSError):
            budget.require()
    except BudgetSpentError as error:
        return str(error)
    return ""


class Spending:
    """Of one job."""

    def __init__(self, local: Path, run: Path, models: Models, clock: Callable[[], float] = time.monotonic) -> None:
        """``local`` is the run folder on the node, ``run`` the one that all jobs see."""
        self._here = Budget(local)
        self._there = budget_of(run, models)
        self._clock = clock
        self._looked = clock()

    def carry(self) -> None:
        """Carry what is new, both ways. What storage does not take now is carried the next time."""
        with suppress(OSError):
            self._there.carry(self._here)
        if self._there.limited and self._clock() - self._looked >= READ_SECONDS_A_FILE * self._there.files:
            self._looked = self._clock()
            with suppress(OSError):
                self._here.carry(self._there)

    def over(self) -> str:
        """Return how the run's budget was spent; empty where more may be."""
        return over_budget(self._there)

    def close(self) -> None:
        """Close the files."""
        self._here.close()
        self._there.close()
