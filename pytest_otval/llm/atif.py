"""A trajectory as Harbor's agents leave it: ``agent/trajectory.json`` in ATIF v1.8.

Its objects forbid unknown fields; ours stand in ``extra``. ``scripts/harbor_results.py`` holds it to Harbor's models.
What it tells of a conversation is what the model was told, word for word, but for characters that no encoding has.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

from pytest_otval.llm.chat import Message, Reply, Usage
from pytest_otval.llm.conversation import utf8

SCHEMA = "ATIF-v1.8"
NAME = "trajectory.json"
MOST_LEVELS = 64
"""Of a call's arguments; where they nest deeper they are kept as text, since not all readers take them."""


class Trajectory:
    """Grows step by step; each ``write`` leaves a whole file."""

    def __init__(self, path: Path, agent: str, version: str, model: str, session: str) -> None:
        """``session`` tells it from all others."""
        self._path = path
        self._head = {"schema_version": SCHEMA, "session_id": session}
        self._agent: dict[str, Any] = {"name": agent, "version": version, "model_name": model}
        self._model = model
        self._done: list[str] = []
        """Steps that do not change any more, as JSON: only what follows is made anew for each file."""
        self._open: list[dict[str, Any]] = []
        """From the latest answer on."""
        self._usages: list[Usage] = []
        self._told: list[Message] = []
        """The conversation as it was when the model was asked last."""

    @property
    def begun(self) -> bool:
        """Whether anything stands in it."""
        return bool(self._done or self._open)

    def tools(self, descriptions: Sequence[Mapping[str, Any]]) -> None:
        """Note what the model may call."""
        if descriptions:
            self._agent["tool_definitions"] = list(descriptions)

    def heard(self, messages: Sequence[Message]) -> None:
        """Note what is new in what the model is told; an agent may have rewritten what was told before."""
        pairs = zip(messages, self._told, strict=False)
        known = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1] or pair[0] == pair[1], pairs))
        self._told = list(messages)
        if (answer := self._answer()) and all(message["role"] != "assistant" for message in messages[known:]):
            answer["extra"]["not_sent_back"] = True
        for message in messages[known:]:
            if message["role"] == "tool":
                self._shown(str(message.get("tool_call_id")), _text(message.get("content")))
            elif message["role"] in ("system", "user"):
                self._step(str(message["role"]), _text(message.get("content")))

    def answered(self, reply: Reply) -> None:
        """Note an answer of the model."""
        self._done += map(_json, self._open)
        self._open = []
        message, usage = reply.message, reply.usage
        step = self._step("agent", _text(message.get("content")))
        step["model_name"] = self._model
        reasoning = _text(message.get("reasoning_content") or message.get("reasoning"))
        if reasoning:
            step["reasoning_content"] = reasoning
        if calls := [_call(call) for call in message.get("tool_calls") or ()]:
            step["tool_calls"] = calls
        step["metrics"] = _metrics(usage)
        step["extra"] = {
            "finish": reply.finish,
            "seconds": round(reply.seconds, 4),
            "waited": round(reply.waited, 4),
            "retries": reply.retries,
            "reasoning_tokens": usage.reasoning,
        }
        self._usages.append(usage)

    def observed(self, content: str, call: str | None, extra: Mapping[str, Any]) -> None:
        """Note what came of a command of the latest answer; ``call`` is the id of the call that it was.

        What the model gets to see of it takes its place once the model is asked again.
        """
        if step := self._answer():
            _results(step).append(_result(step, call, _text(content)))
            step["extra"].setdefault("commands", []).append(dict(extra))

    def malformed(self, why: str) -> None:
        """Note that the latest answer could not be understood."""
        if step := self._answer():
            step["extra"]["malformed"] = why

    def write(self, extra: Mapping[str, Any] | None = None) -> None:
        """Leave the file as it stands; none as long as there is no step, which would be invalid. Raises OSError."""
        steps = [*self._done, *map(_json, self._open)]
        if not steps:
            return
        prices = [usage.usd for usage in self._usages if usage.usd is not None]
        final = {
            "total_prompt_tokens": sum(usage.prompt for usage in self._usages),
            "total_completion_tokens": sum(usage.completion for usage in self._usages),
            "total_cached_tokens": sum(usage.cached for usage in self._usages),
            "total_cost_usd": sum(prices) if prices and len(prices) == len(self._usages) else None,
            "total_steps": len(steps),
        }
        rest = {"agent": self._agent, "final_metrics": final, **({"extra": extra} if extra else {})}
        body = ",\n".join(steps)
        text = f'{_json(self._head)[:-1]},\n"steps": [\n{body}\n],\n{_json(rest)[1:]}\n'
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        part.write_text(text, encoding="utf-8")
        part.replace(self._path)

    def _step(self, source: str, message: str) -> dict[str, Any]:
        step: dict[str, Any] = {
            "step_id": len(self._done) + len(self._open) + 1,
            "timestamp": datetime.now(UTC).isoformat(),
            "source": source,
            "message": message,
        }
        self._open.append(step)
        return step

    def _answer(self) -> dict[str, Any] | None:
        """Return the step of the latest answer."""
        return self._open[0] if self._open and self._open[0]["source"] == "agent" else None

    def _shown(self, call: str, content: str) -> None:
        """Note what the model is told of a call of its latest answer."""
        if step := self._answer():
            results = _results(step)
            known = next((one for one in results if one.get("source_call_id") == utf8(call)), None)
            if known is None:
                results.append(_result(step, call, content))
            else:
                known["content"] = content


def _results(step: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = step.setdefault("observation", {"results": []})["results"]
    return found


def _result(step: Mapping[str, Any], call: str | None, content: str) -> dict[str, Any]:
    """Return a result; it may name no other calls than those of its step."""
    id = utf8(call)
    known = any(one["tool_call_id"] == id for one in step.get("tool_calls", ()))
    return {"content": content, **({"source_call_id": id} if known else {})}


def _metrics(usage: Usage) -> dict[str, Any]:
    metrics: dict[str, Any] = {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "cached_tokens": usage.cached,
    }
    return metrics if usage.usd is None else {**metrics, "cost_usd": usage.usd}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"])
        # Python reads NaN and 1e999, which are no JSON.
        known = isinstance(arguments, dict) and _is_shallow(arguments) and bool(json.dumps(arguments, allow_nan=False))
    except (ValueError, RecursionError):
        known = False
    if not known:
        arguments = {"malformed": function["arguments"]}
    return {"tool_call_id": call["id"], "function_name": function["name"], "arguments": arguments}


def _is_shallow(value: Any, levels: int = MOST_LEVELS) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return not isinstance(value, list) or (levels > 0 and all(_is_shallow(one, levels - 1) for one in value))


def _text(content: Any) -> str:
    """Return a message's text; of parts the texts alone."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "\n".join(_text(part.get("text")) for part in content if isinstance(part, Mapping))
    return ""


def _json(value: Any) -> str:
    return json.dumps(utf8(value), allow_nan=False)
