"""What an agent of a trial is: something that acts in the agent phase's container."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pytest_otval.sandbox.base import Bind, Command, CommandResult
from pytest_otval.task.load import Step, Task
from pytest_otval.trial.reward import Side


@dataclass(frozen=True, slots=True)
class AgentPlace:
    """Where an agent acts: a container of the task's image, its user, workdir, variables and limit."""

    run: Callable[[Command], CommandResult]
    env: Mapping[str, str]
    user: str | int | None
    workdir: str
    seconds: float | None
    log: Path
    revive: Callable[[], None]
    """Starts the container anew after a command at which it died."""
    used: dict[str, Any]
    """Takes what the agent used, in the names of Harbor's ``agent_result``; also where it ends by an exception."""


class Agent(Protocol):
    """An agent. It never sees tests/ or /logs/verifier."""

    @property
    def name(self) -> str:
        """Name in trial keys and the ledger."""

    @property
    def version(self) -> str:
        """Stands in result.json."""

    @property
    def model(self) -> str:
        """Name of the model that drives it; empty for none."""

    @property
    def acts(self) -> bool:
        """Whether it needs a container at all."""

    @property
    def side(self) -> Side:
        """Which of several rewards decides: ``low`` the lowest, of one that should be paid, else ``high``."""

    def check(self, task: Task, step: Step) -> None:
        """Raise a Conclusion where it cannot act on this task."""

    def binds(self, task: Task, step: Step, folder: Path) -> list[Bind]:
        """Make what it brings along below ``folder``."""

    def act(self, task: Task, step: Step, place: AgentPlace) -> CommandResult | None:
        """Act; None where nothing was run."""
