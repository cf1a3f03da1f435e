"""Answers of a judge that are known: who asks the same again gets them without asking the model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_otval.judge.model import Spending
from pytest_otval.kept import KEY_CHARS, Kept
from pytest_otval.llm.chat import Chat, Message, Reply, Usage

VERSION = "1"
"""Of the form of what is kept; all else that an answer depends on is in its key."""


class CachedChat:
    """A model for one conversation, whose answers are kept once somebody has understood them."""

    def __init__(self, chat: Chat, kept: Kept, group: str, settings: Mapping[str, Any], vote: int = 0) -> None:
        """``group``: answers of one share a file, as those about one dataset. ``settings``: of each request.

        ``vote``: which of several answers to the same question it is for, from 0.
        """
        self._chat = chat
        self._kept = kept
        self._group = group
        self._settings = settings
        self._vote = vote
        self._pending: dict[str, Reply] = {}
        self.spending = Spending()
        """What the conversation took so far."""

    @property
    def model(self) -> str:
        """Its name, as the endpoint knows it."""
        return self._chat.model

    def complete(self, messages: Sequence[Message], answer_format: Mapping[str, Any]) -> Reply:
        """Return the model's next message, see Chat; one that is known took nothing."""
        facts = [self.model, self._settings, messages, answer_format, self._vote]
        key = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:KEY_CHARS]
        known = _reply(self._kept.get(self._group, key))
        if known is not None:
            self.spending += Spending(answers=1, cached=1)
            return known
        reply = self._chat.complete(messages, answer_format=answer_format)
        usage = reply.usage
        self.spending += Spending(1, 0, usage.prompt, usage.completion, usage.usd)
        self._pending[key] = reply
        return reply

    def keep(self) -> None:
        """Keep the answers so far: somebody understood them. What nobody understands is asked for again next time."""
        for key, reply in self._pending.items():
            self._kept.put(self._group, key, {"message": reply.message, "finish": reply.finish})
        self._pending.clear()
        # A run that is killed must not pay for them once more.
        self._kept.flush()


def _reply(value: object) -> Reply | None:
    match value:
        case {"message": {"content": str()} as message, "finish": str(finish)}:
            return Reply(message, finish, Usage(), 0.0)
    return None
