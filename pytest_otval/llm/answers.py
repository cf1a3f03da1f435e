"""One answer, put together from what an endpoint sends: piece by piece or whole, and not always as it should.

The form is OpenAI's (``chat.completion`` and ``chat.completion.chunk``). Servers leave out ids, types and indexes, give
arguments as objects and texts as lists of parts; reasoning has two names. What comes out has one form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_otval.llm.chat import Usage
from pytest_otval.llm.conversation import REASONING

MOST_CHARS = 16 * 1024 * 1024
"""No model writes so much in one answer; a server that does is broken."""
_FINISHES = {
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}


class BrokenAnswerError(Exception):
    """What came is no answer, or not all of one."""


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True, repr=False)
class Answer:
    """What came of an answer so far; a traceback shows nothing of it, since a server may repeat its key there."""

    _content: list[str] = field(default_factory=list)
    _refusal: list[str] = field(default_factory=list)
    _reasoning: dict[str, list[str]] = field(default_factory=dict)
    _calls: list[_Call] = field(default_factory=list)
    _places: dict[int, _Call] = field(default_factory=dict)
    """Calls by the index that the server gives them."""
    _finish: str = ""
    _usage: Mapping[str, Any] | None = None
    _chars: int = 0

    def add(self, data: object) -> None:
        """Take one piece, or the whole answer. Raises BrokenAnswerError."""
        if not isinstance(data, Mapping):
            raise BrokenAnswerError("it sent no JSON object")
        if isinstance(data.get("usage"), Mapping):
            self._usage = data["usage"]
        choices = data.get("choices") or ()
        if not isinstance(choices, Sequence) or not all(isinstance(choice, Mapping) for choice in choices):
            raise BrokenAnswerError("its choices are no list of objects")
        # Only one is asked for; the piece with the usage has none.
        for choice in choices[:1]:
            part = choice.get("delta") or choice.get("message") or {}
            if not isinstance(part, Mapping):
                raise BrokenAnswerError("its message is no object")
            self._take(part)
            finish = choice.get("finish_reason")
            self._finish = finish if isinstance(finish, str) and finish else self._finish

    def _take(self, part: Mapping[str, Any]) -> None:
        self._append(self._content, part.get("content"))
        self._append(self._refusal, part.get("refusal"))
        for name in REASONING:
            if part.get(name):
                self._append(self._reasoning.setdefault(name, []), part[name])
        calls = part.get("tool_calls") or ()
        if not isinstance(calls, Sequence) or not all(isinstance(call, Mapping) for call in calls):
            raise BrokenAnswerError("its tool calls are no list of objects")
        for call in calls:
            self._take_call(call)

    def _take_call(self, piece: Mapping[str, Any]) -> None:
        function = piece.get("function")
        function = function if isinstance(function, Mapping) else {}
        id, name = (value if isinstance(value, str) else "" for value in (piece.get("id"), function.get("name")))
        call = self._call(piece.get("index"), id, name)
        call.id, call.name = call.id or id, call.name or name
        arguments = function.get("arguments")
        self._append(call.arguments, json.dumps(arguments) if isinstance(arguments, Mapping) else arguments)

    def _call(self, index: object, id: str, name: str) -> _Call:
        """Return the call that a piece belongs to: some servers number none, or all of them 0."""
        place = index if isinstance(index, int) else None
        known = self._places.get(place) if place is not None else (self._calls[-1] if self._calls else None)
        another = known is not None and bool(name) and (bool(id and known.id and id != known.id) or place is None)
        if known is None or another:
            known = _Call()
            self._calls.append(known)
            if place is not None:
                self._places[place] = known
        return known

    def _append(self, texts: list[str], value: object) -> None:
        text = _text(value)
        self._chars += len(text)
        if self._chars > MOST_CHARS:
            raise BrokenAnswerError(f"its answer has more than {MOST_CHARS} characters")
        if text:
            texts.append(text)

    @property
    def begun(self) -> bool:
        """Whether anything of it came."""
        return bool(self._chars or self._finish)

    def require_whole(self) -> None:
        """Raise BrokenAnswerError where its end is missing."""
        if not self._finish:
            raise BrokenAnswerError("its answer broke off")
        if self._finish == "error":
            raise BrokenAnswerError("it ended the answer with an error of its own")

    @property
    def finish(self) -> str:
        """Return why it ended, in one of the words of Reply."""
        return _FINISHES.get(self._finish) or ("tool_calls" if self._calls else "stop")

    def message(self) -> dict[str, Any]:
        """Return the assistant's message."""
        # Chat templates print None where a message has no text.
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._content)}
        message |= {name: "".join(texts) for name, texts in self._reasoning.items()}
        if self._refusal:
            message["refusal"] = "".join(self._refusal)
        if self._calls:
            message["tool_calls"] = self._numbered()
        return message

    def _numbered(self) -> list[dict[str, Any]]:
        """Each call needs an id of its own, by which its result is told."""
        taken = {call.id for call in self._calls}
        seen: set[str] = set()
        calls = []
        for number, call in enumerate(self._calls):
            id = call.id
            if not id or id in seen:
                id = f"call_{number}"
                while id in taken:
                    id += "_"
            seen.add(id)
            function = {"name": call.name, "arguments": "".join(call.arguments)}
            calls.append({"id": id, "type": "function", "function": function})
        return calls

    def usage(self, sent: object) -> Usage:
        """Return the tokens as the endpoint counted them, else an estimate from ``sent`` and what came."""
        told = self._usage or {}
        prompt, completion = _count(told, "prompt_tokens"), _count(told, "completion_tokens")
        if prompt is None or completion is None:
            return Usage(_tokens(len(json.dumps(sent))), _tokens(self._chars), estimated=True)
        # The second name is DeepSeek's.
        cached = _count(told.get("prompt_tokens_details"), "cached_tokens") or _count(told, "prompt_cache_hit_tokens")
        reasoning = _count(told.get("completion_tokens_details"), "reasoning_tokens")
        return Usage(prompt, completion, min(cached or 0, prompt), min(reasoning or 0, completion))


def _text(value: object) -> str:
    """Return a text, or those of a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return "".join(_text(part.get("text") if isinstance(part, Mapping) else part) for part in value)
    return ""


def _count(values: object, name: str) -> int | None:
    value = values.get(name) if isinstance(values, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _tokens(size: int) -> int:
    """Return about how many tokens a text has, rather more than less: English has four characters in one."""
    return -(-size // 4) + 1
