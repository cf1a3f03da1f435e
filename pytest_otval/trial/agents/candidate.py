"""The agent that runs a script of which somebody claims that it solves a task, or that it does not."""

from __future__ import annotations

from pytest_otval.sandbox.base import Command, CommandResult
from pytest_otval.task.load import Step, Task
from pytest_otval.trial.agents.attack import PLACE, RUN, Scripts
from pytest_otval.trial.agents.base import AgentPlace
from pytest_otval.trial.layer import run_script
from pytest_otval.trial.reward import Side


class Candidate(Scripts):
    """See ``base.Agent``. Of several rewards the lowest decides: it is paid where the reference solution would be."""

    side: Side = "low"

    def __init__(self, name: str, script: str) -> None:
        # What a model wrote may hold half of a surrogate pair.
        super().__init__(name, {RUN: script.encode("utf-8", "replace").decode()})

    def act(self, task: Task, step: Step, place: AgentPlace) -> CommandResult | None:
        """Run it as solve.sh is run, within the agent's time."""
        argv = run_script(f"{PLACE}/{RUN}")
        return place.run(Command(argv, place.log, place.env, place.user, place.workdir, place.seconds))
