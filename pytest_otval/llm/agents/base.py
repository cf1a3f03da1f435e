"""What an agent driven by a model is, and how it acts in a trial."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.llm.atif import NAME, Trajectory
from pytest_otval.llm.attempts import tokens_of
from pytest_otval.llm.chat import BudgetSpentError, Chat, EndpointError
from pytest_otval.llm.session import STOPS, Record, Session, StopAttempt
from pytest_otval.llm.shell import Shell
from pytest_otval.sandbox.base import Bind, CommandResult
from pytest_otval.task.load import Step, Task
from pytest_otval.task.named import instruction_text
from pytest_otval.trial.agents.base import AgentPlace
from pytest_otval.trial.reward import Side


class ModelAgent(Protocol):
    """A loop of questions to a model and commands of its answers. It runs outside of the container."""

    @property
    def name(self) -> str:
        """What ``--otval-agent`` calls it."""

    @property
    def version(self) -> str:
        """Stands in trajectories. Raises OtvalUsageError where the agent cannot be used here."""

    @property
    def env(self) -> dict[str, str]:
        """Variables that its commands have besides those of the task."""

    def solve(self, session: Session) -> str:
        """Ask and run until the model is done; return why it ended, one of ``session.STOPS``.

        What ``session.ask`` and ``session.run`` raise must get through.
        """


def agent_named(agents: Mapping[str, ModelAgent], name: str) -> ModelAgent:
    """Return one of ``agents``. Raises OtvalUsageError for a name that no plugin gives."""
    if name not in agents:
        raise OtvalUsageError(f"--otval-agent {name}: there is none: plugins give {', '.join(agents)}")
    return agents[name]


class Attempting:
    """See ``trial.agents.base.Agent``: an agent with its model makes one attempt."""

    acts = True
    side: Side = "low"

    def __init__(self, agent: ModelAgent, chat: Chat, max_steps: int) -> None:
        self.name = agent.name
        self.version = agent.version
        self.model = chat.model
        self.records: list[Record] = []
        """Of each step of the task that was come to."""
        self._agent = agent
        self._chat = chat
        self._max_steps = max_steps

    def check(self, task: Task, step: Step) -> None:
        """Any task can be tried. Raises Conclusion ``bad-task`` where it says nothing."""
        if not instruction_text(step).strip():
            raise Conclusion("bad-task", "instruction.md is empty, so there is nothing to ask of a model")

    def binds(self, task: Task, step: Step, folder: Path) -> list[Bind]:
        """Bring nothing: the model is asked from outside."""
        return []

    def act(self, task: Task, step: Step, place: AgentPlace) -> CommandResult | None:
        """Let the model try. Raises Conclusion where its endpoint gives no answer: that is none about the task."""
        session_id = secrets.token_hex(8)
        trajectory = Trajectory(place.log.with_name(NAME), self.name, self.version, self.model, session_id)
        shell = Shell(place, self._agent.env)
        session = Session(instruction_text(step), self._chat, shell, trajectory, self._max_steps, place.seconds)
        self.records.append(session.record)
        finish = ""
        try:
            finish = self._solve(session)
        finally:
            session.close(finish)
            place.used.update(used_by(session.record, self.model))
            place.log.unlink(missing_ok=True)
        return None

    def _solve(self, session: Session) -> str:
        """Return why it ended. Raises Conclusion."""
        try:
            finish = self._agent.solve(session)
        except StopAttempt as stop:
            finish = str(stop)
        except EndpointError as error:
            raise Conclusion("endpoint-failed", str(error)) from None
        except BudgetSpentError as error:
            raise Conclusion("budget-spent", str(error)) from None
        if finish not in STOPS:
            known = ", ".join(STOPS)
            raise Conclusion("internal", f"the agent {self.name} ended by {finish!r}, which is none of {known}")
        return finish


def used_by(record: Record, model: str) -> dict[str, Any]:
    """Return what an attempt used, as Harbor's ``AgentContext`` has it."""
    tokens = tokens_of(record.usages)
    used = {
        "n_input_tokens": tokens["prompt_tokens"],
        "n_cache_tokens": tokens["cached_tokens"],
        "n_output_tokens": tokens["completion_tokens"],
        "cost_usd": tokens["usd"] if record.usages else None,
    }
    return {
        **used,
        "model_usage": {model: used},
        "metadata": {"finish": record.finish, "left_alive": record.left_alive},
    }
