"""What agents and judges ask of a language model, whatever serves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Message = Mapping[str, Any]
"""One message of a conversation, as OpenAI's chat completions have it: ``role``, ``content``, ``tool_calls``, ..."""


class EndpointError(Exception):
    """The model did not answer, whatever was tried: nothing is known about the task. The text holds no key."""


class ContextOverflowError(Exception):
    """The conversation is longer than what the model takes."""


class BudgetSpentError(Exception):
    """What the run may spend is spent; the text says of which budget, and how much."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one answer took, in tokens, as the endpoint counted them."""

    prompt: int = 0
    """Of the conversation so far, those from a cache among them."""
    completion: int = 0
    """Of the answer, those of reasoning among them."""
    cached: int = 0
    reasoning: int = 0
    usd: float | None = None
    """None where the profile knows no prices."""
    estimated: bool = False
    """Whether the endpoint counted nothing, so that these are ours, from the lengths of texts."""

    @property
    def tokens(self) -> int:
        """All of them, as a budget counts them."""
        return self.prompt + self.completion


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer."""

    message: Message
    """The assistant's message, to be appended to the conversation as it is."""
    finish: str
    """``stop``, ``tool_calls``, ``length`` (it was cut), ``content_filter``."""
    usage: Usage
    seconds: float
    """From the request that was answered to its answer."""
    waited: float = 0.0
    """Before that, for a free slot and in retries."""
    retries: int = 0


class Chat(Protocol):
    """A model behind an endpoint."""

    @property
    def model(self) -> str:
        """Its name, as the endpoint knows it."""

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        deadline: float | None = None,
        answer_format: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Return the model's next message.

        ``tools`` are OpenAI's descriptions of functions. ``deadline``: the time (``time.monotonic()``) after which an
        answer is of no use. ``answer_format`` is OpenAI's ``response_format``, and a wish: not every endpoint knows it,
        so the answer may have any form. Raises EndpointError, ContextOverflowError, BudgetSpentError, TimeoutError at
        the deadline.
        """
