"""A model that says what a test wants, and an agent's place in which nothing runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_otval.llm.atif import Trajectory
from pytest_otval.llm.chat import Message, Reply, Usage
from pytest_otval.llm.session import Session
from pytest_otval.llm.shell import Shell
from pytest_otval.sandbox.base import Command, CommandResult
from pytest_otval.trial.agents.base import AgentPlace
from selftests.fakes import Answer


def call(arguments: Any, name: str = "shell", id: str = "c1") -> dict[str, Any]:
    """A call of a tool; ``arguments`` are text as it is, or data."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


def said(content: Any = "", *calls: Mapping[str, Any], finish: str = "", **fields: Any) -> Reply:
    """An answer of 10 and 5 tokens."""
    message: dict[str, Any] = {"role": "assistant", "content": content, **fields}
    if calls:
        message["tool_calls"] = list(calls)
    return Reply(message, finish or ("tool_calls" if calls else "stop"), Usage(10, 5, 4), 0.5)


def runs(command: str, name: str = "shell", id: str = "c1") -> Reply:
    """An answer that calls for a command."""
    return said("so", call({"command": command}, name, id))


@dataclass
class ScriptedChat:
    """See ``pytest_otval.llm.chat.Chat``: says one after the other, the last for ever; raises exceptions."""

    says: Sequence[Reply | Exception]
    model: str = "some/model"
    asked: list[list[Message]] = field(default_factory=list)
    """The conversation of each request."""
    deadlines: list[float | None] = field(default_factory=list)
    formats: list[Mapping[str, Any] | None] = field(default_factory=list)

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        deadline: float | None = None,
        answer_format: Mapping[str, Any] | None = None,
    ) -> Reply:
        answer = self.says[min(len(self.asked), len(self.says) - 1)]
        self.asked.append(list(messages))
        self.formats.append(answer_format)
        self.deadlines.append(deadline)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Place:
    """An agent's place: ``answer`` decides how each command line of an agent ends."""

    def __init__(self, folder: Path, answer: Callable[[str], Answer | None] = lambda line: None) -> None:
        self.commands: list[Command] = []
        self.lines: list[str] = []
        """What the shell of the agent was given."""
        self.revived = 0
        self.used: dict[str, Any] = {}
        self._answer = answer
        self.place = AgentPlace(
            self._run, {"A": "1"}, "agent", "/work", None, folder / "agent" / "x.txt", self._revive, self.used
        )

    def _revive(self) -> None:
        self.revived += 1

    def _run(self, command: Command) -> CommandResult:
        self.commands.append(command)
        answer: Answer | None
        if "command -v bash" in command.argv[-1]:
            answer = Answer(output=b"/bin/bash\n")
        else:
            self.lines.append(command.argv[-1])
            answer = self._answer(command.argv[-1])
        answer = answer or Answer()
        command.log.parent.mkdir(parents=True, exist_ok=True)
        command.log.write_bytes(answer.output)
        return CommandResult(answer.ended, answer.status, 0.0, command.log, answer.left_alive)


def session_of(
    chat: ScriptedChat, place: Place, max_steps: int = 10, seconds: float | None = None, instruction: str = "do it"
) -> Session:
    """A session whose trajectory lies beside the place's log."""
    path = place.place.log.with_name("trajectory.json")
    trajectory = Trajectory(path, "tools", "1", chat.model, "s")
    return Session(instruction, chat, Shell(place.place), trajectory, max_steps, seconds)


def trajectory_of(place: Place) -> dict[str, Any]:
    """What was left of it, read as strictly as any reader may."""
    found: dict[str, Any] = json.loads(
        place.place.log.with_name("trajectory.json").read_bytes(), parse_constant=_refuse
    )
    return found


def _refuse(name: str) -> None:
    raise ValueError(name)


def texts(value: Any) -> Iterator[str]:
    """Yield all texts of JSON data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from (key, *texts(one))
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
