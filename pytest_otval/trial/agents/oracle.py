"""The agent that runs the reference solution."""

from __future__ import annotations

from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.sandbox.base import Bind, Command, CommandResult
from pytest_otval.task.copies import copy_in
from pytest_otval.task.load import Step, Task
from pytest_otval.task.reading import is_regular
from pytest_otval.trial.agents.base import AgentPlace
from pytest_otval.trial.environment import resolve
from pytest_otval.trial.layer import run_script
from pytest_otval.trial.reward import Side

SOLVE = "/solution/solve.sh"


class Oracle:
    """See ``base.Agent``."""

    name = "oracle"
    version = "1.0.0"
    """Of Harbor's agent."""
    model = ""
    acts = True
    side: Side = "low"

    def check(self, task: Task, step: Step) -> None:
        """Raise Conclusion ``no-solution`` where there is none."""
        if not is_regular(step.solution / "solve.sh"):
            where = f"steps/{step.name}/solution/solve.sh" if step.name else "solution/solve.sh"
            raise Conclusion("no-solution", f"there is no {where}")

    def binds(self, task: Task, step: Step, folder: Path) -> list[Bind]:
        """Bring a copy of the solution."""
        copy_in(step.solution, folder / "solution")
        return [Bind(folder / "solution", "/solution")]

    def act(self, task: Task, step: Step, place: AgentPlace) -> CommandResult | None:
        """Run solve.sh as the agent's user."""
        assert task.config is not None
        env = {**place.env, "DEBIAN_FRONTEND": "noninteractive", **resolve(task.config.solution.env, "solution.env")}
        return place.run(Command(run_script(SOLVE), place.log, env, place.user, place.workdir, place.seconds))
