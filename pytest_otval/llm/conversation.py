"""A conversation as an endpoint takes it: agents may append what they got, and note things of their own in messages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_otval.llm.chat import Message

REASONING = ("reasoning_content", "reasoning")
"""Names under which servers give a model's reasoning."""
_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id", "refusal")


def outgoing(messages: Sequence[Message], reasoning_back: bool) -> list[dict[str, Any]]:
    """Return messages with the fields that endpoints know, in UTF-8, each call with arguments that are JSON."""
    fields = (*_FIELDS, *REASONING) if reasoning_back else _FIELDS
    return [{name: _sent(name, message[name]) for name in fields if name in message} for message in messages]


def _sent(name: str, value: Any) -> Any:
    if name == "tool_calls" and isinstance(value, Sequence):
        return [_call(call) for call in value]
    return utf8(value)


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    return utf8({**call, "function": {**function, "arguments": _arguments(function["arguments"])}})  # type: ignore[no-any-return]


def _arguments(text: str) -> str:
    """Chat templates of vLLM read them as JSON, and the whole request fails where an earlier answer's are none."""
    try:
        known = isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        known = False
    return text if known else json.dumps({"malformed": text})


def utf8(value: Any) -> Any:
    """Return JSON data in UTF-8: commands and answers may hold half characters, which no JSON writer takes."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {utf8(key): utf8(one) for key, one in value.items()}
    return [utf8(one) for one in value] if isinstance(value, list | tuple) else value
