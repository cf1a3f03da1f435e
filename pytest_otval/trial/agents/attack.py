"""The agent that tries to be paid without solving anything: it runs scripts as solve.sh is run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_otval.sandbox.base import TOOLBOX, Bind, Command, CommandResult
from pytest_otval.task.load import Step, Task
from pytest_otval.trial.agents.base import AgentPlace
from pytest_otval.trial.reward import Side

PLACE = "/.otval-attack"
"""Where the agent's container finds what it runs."""

RUN = "run.sh"
"""What is run of that."""

MOST_SECONDS = 60.0


class Scripts:
    """See ``base.Agent``. ``files`` are texts by their path below ``PLACE``; ``RUN`` is one of them."""

    version = "1.0.0"
    model = ""
    acts = True
    side: Side = "high"

    def __init__(self, name: str, files: Mapping[str, str]) -> None:
        self.name = name
        self._files = files

    def check(self, task: Task, step: Step) -> None:
        """An attack on anything is possible."""

    def binds(self, task: Task, step: Step, folder: Path) -> list[Bind]:
        """Bring the files, readable for any user."""
        top = folder / "attack"
        for name, text in self._files.items():
            path = top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for path in (top, *top.rglob("*")):
            path.chmod(0o755)
        return [Bind(top, PLACE)]

    def act(self, task: Task, step: Step, place: AgentPlace) -> CommandResult | None:
        """Run it as the agent's user, within the agent's time and a minute."""
        seconds = min(place.seconds or MOST_SECONDS, MOST_SECONDS)
        argv = [f"{TOOLBOX}/sh", f"{PLACE}/{RUN}"]
        return place.run(Command(argv, place.log, place.env, place.user, place.workdir, seconds))
