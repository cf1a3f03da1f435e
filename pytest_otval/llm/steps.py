"""What an agent did, one step after the other, whatever the agent."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_otval.llm.chat import Usage

SHELL = "shell"
"""The tool whose input is a command line of bash."""


@dataclass(frozen=True, slots=True)
class Step:
    """One message of the model with at most one call of a tool, and what came of it.

    A message with several calls is several steps: the first has the message's usage, seconds, thought and reasoning.
    """

    command: str = ""
    """What the tool was given: of the shell a command line, of others their arguments as text. Empty for no call."""
    output: str = ""
    """What the model got to see, cut as it was cut."""
    status: int | None = None
    """How the command ended; None where it did not, or has no status."""
    timed_out: bool = False
    model_seconds: float = 0.0
    """From the request that was answered to its answer."""
    command_seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    malformed: bool = False
    """The model's message could not be understood: no call, several where one may be, broken arguments."""
    thought: str = ""
    """The text of the message beside the call."""
    reasoning: str = ""
    """What the endpoint gave as reasoning of the model."""
    tool: str = SHELL

    @property
    def failed(self) -> bool:
        """Whether the call came to nothing: not understood, cut off by time, or ended with another status than 0."""
        return self.malformed or self.timed_out or self.status not in (0, None)
