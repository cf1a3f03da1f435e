"""The agent that does nothing."""

from __future__ import annotations

from pathlib import Path

from pytest_otval.sandbox.base import Bind, CommandResult
from pytest_otval.task.load import Step, Task
from pytest_otval.trial.agents.base import AgentPlace
from pytest_otval.trial.reward import Side


class Noop:
    """See ``base.Agent``."""

    name = "noop"
    version = "1.0.0"
    """Of Harbor's agent."""
    model = ""
    acts = False
    side: Side = "high"

    def check(self, task: Task, step: Step) -> None:
        """Nothing is always possible."""

    def binds(self, task: Task, step: Step, folder: Path) -> list[Bind]:
        """Bring nothing."""
        return []

    def act(self, task: Task, step: Step, place: AgentPlace) -> CommandResult | None:
        """Do nothing."""
        return None
