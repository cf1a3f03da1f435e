"""One attempt of a model at one step of a task: what its agent may ask and run, its limits, and the record of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_otval.llm.atif import Trajectory
from pytest_otval.llm.chat import Chat, ContextOverflowError, Message, Reply, Usage
from pytest_otval.llm.shell import OutOfSpaceError, Ran, Shell
from pytest_otval.llm.steps import Step

COMMAND_SECONDS = 120.0
"""What one command of an agent may take; the attempt's own time may end it before."""
MOST_CHARACTERS = 20_000
"""Of a command's output that is noted: its first and last half."""


class StopAttempt(Exception):
    """The attempt is over; its text is one of ``STOPS``."""


STOPS: Mapping[str, str] = {
    "submitted": "the model said that it is done",
    "steps": "it took as many answers as an attempt may",
    "time": "the task's time for agents was over",
    "context": "the conversation was longer than what the model takes",
    "format": "its answers could not be understood, several times in a row",
    "refused": "the endpoint or the model refused to go on",
    "storage": "it wrote more than the task's storage holds",
}
"""Why attempts end. Errors of the endpoint and of the machine are no end of an attempt: there is no answer then."""

TRUNCATED = frozenset(("steps", "time", "context", "storage"))
"""Of those, what cuts an attempt off."""


@dataclass(slots=True)
class Record:
    """What an attempt did so far."""

    steps: list[Step] = field(default_factory=list)
    usages: list[Usage] = field(default_factory=list)
    retries: int = 0
    memory_kills: int = 0
    left_alive: int = 0
    finish: str = ""


class Session:
    """See above. The agent asks and runs; limits end it by ``StopAttempt``, whatever the agent is."""

    def __init__(
        self,
        instruction: str,
        chat: Chat,
        shell: Shell,
        trajectory: Trajectory,
        max_steps: int,
        seconds: float | None,
    ) -> None:
        """``seconds``: of the whole attempt, waiting for the model among them, as Harbor counts an agent's time."""
        self.instruction = instruction
        self.record = Record()
        self._chat = chat
        self._shell = shell
        self._trajectory = trajectory
        self._max_steps = max_steps
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._answers = 0
        self._reply: Reply | None = None
        """The latest answer, until a step has taken its usage."""

    @property
    def model(self) -> str:
        """The model's name."""
        return self._chat.model

    def ask(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()) -> Reply:
        """Return the model's next message.

        Raises StopAttempt; EndpointError and BudgetSpentError, which end the attempt without an answer.
        """
        if self._answers == self._max_steps:
            raise StopAttempt("steps")
        self._flush()
        self._trajectory.tools(tools)
        self._trajectory.heard(messages)
        self._left()
        try:
            reply = self._chat.complete(messages, tools, self._deadline)
        except ContextOverflowError:
            raise StopAttempt("context") from None
        except TimeoutError:
            raise StopAttempt("time") from None
        self._answers += 1
        self._reply = reply
        self.record.usages.append(reply.usage)
        self.record.retries += reply.retries
        self._trajectory.answered(reply)
        self._trajectory.write()
        if reply.finish == "content_filter":
            raise StopAttempt("refused")
        return reply

    def run(self, command: str, call: str | None = None) -> Ran:
        """Run a command of the latest answer; ``call`` is the id of its tool call. Raises StopAttempt, Conclusion."""
        left = self._left()
        try:
            ran = self._ran(command, left)
        except StopAttempt:
            self._note(Step(command=command))
            raise
        output = shortened(ran.output)
        self._note(Step(command, output, ran.status, ran.timed_out, command_seconds=ran.seconds))
        facts = {"status": ran.status, "seconds": round(ran.seconds, 4), "timed_out": ran.timed_out}
        self._trajectory.observed(output, call, {**facts, "note": ran.note} if ran.note else facts)
        self._trajectory.write()
        return ran

    def look(self, command: str) -> str:
        """Return the output of a command of the agent's own. Raises StopAttempt, Conclusion."""
        return self._ran(command, self._left()).output

    def _ran(self, command: str, left: float) -> Ran:
        try:
            return self._shell.run(command, min(COMMAND_SECONDS, left))
        except OutOfSpaceError:
            raise StopAttempt("storage") from None
        finally:
            self.record.memory_kills, self.record.left_alive = self._shell.memory_kills, self._shell.left_alive

    def malformed(self, why: str) -> None:
        """Note that the latest answer, or a call of it, could not be understood."""
        self._note(Step(malformed=True))
        self._trajectory.malformed(why)

    def close(self, finish: str) -> None:
        """Note why it ended; nothing where there was no end of its own."""
        self._flush()
        self.record.finish = finish
        if not self._trajectory.begun:
            self._trajectory.heard([{"role": "user", "content": self.instruction}])
        self._trajectory.write({"finish": finish})

    def _left(self) -> float:
        """Return the seconds that the attempt has. Raises StopAttempt."""
        if self._deadline is None:
            return COMMAND_SECONDS
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise StopAttempt("time")
        return left

    def _note(self, step: Step) -> None:
        """Add a step; the first of an answer has the answer's usage and thought."""
        self.record.steps.append(_with_answer(step, self._reply) if self._reply is not None else step)
        self._reply = None

    def _flush(self) -> None:
        """An answer without a command is a step, too."""
        if self._reply is not None:
            self._note(Step())


def shortened(text: str) -> str:
    """Return a text of at most ``MOST_CHARACTERS`` and a note of what is left out."""
    half = MOST_CHARACTERS // 2
    left_out = len(text) - 2 * half
    return text if left_out <= 0 else f"{text[:half]}\n[{left_out} characters are left out here]\n{text[-half:]}"


def _with_answer(step: Step, reply: Reply) -> Step:
    message = reply.message
    content = message.get("content")
    return replace(
        step,
        model_seconds=reply.seconds,
        usage=reply.usage,
        thought=content if isinstance(content, str) else "",
        reasoning=str(message.get("reasoning_content") or message.get("reasoning") or ""),
    )
