"""A trajectory as Harbor's agents leave it: ``agent/trajectory.json`` in ATIF v1.8.

Its objects forbid unknown fields; ours stand in ``extra``. ``scripts/harbor_results.py`` holds it to Harbor's models.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_otval.llm.chat import Message, Reply, Usage

SCHEMA = "ATIF-v1.8"
NAME = "trajectory.json"


class Trajectory:
    """Grows step by step; each ``write`` leaves a whole file."""

    def __init__(self, path: Path, agent: str, version: str, model: str, session: str) -> None:
        """``session`` tells it from all others."""
        self._path = path
        self._head = {"schema_version": SCHEMA, "session_id": session}
        self._agent: dict[str, Any] = {"name": agent, "version": version, "model_name": model}
        self._model = model
        self._steps: list[dict[str, Any]] = []
        self._usages: list[Usage] = []
        self._known = 0
        """Messages of the conversation that stand in it."""

    def tools(self, descriptions: Sequence[Mapping[str, Any]]) -> None:
        """Note what the model may call."""
        if descriptions:
            self._agent["tool_definitions"] = list(descriptions)

    def heard(self, messages: Sequence[Message]) -> None:
        """Note what the model is told besides the output of its commands, which ``observed`` notes."""
        for message in messages[self._known :]:
            if message["role"] in ("system", "user"):
                self._step(str(message["role"]), _text(message.get("content")))
        self._known = len(messages)

    def answered(self, reply: Reply) -> None:
        """Note an answer of the model."""
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
        """Note what came of a command of the latest answer; ``call`` is the id of the call that it was."""
        if not self._steps:
            return
        step = self._steps[-1]
        result: dict[str, Any] = {"content": _text(content)}
        if call is not None:
            result["source_call_id"] = call
        step.setdefault("observation", {"results": []})["results"].append(result)
        step.setdefault("extra", {}).setdefault("commands", []).append(dict(extra))

    def write(self, extra: Mapping[str, Any] | None = None) -> None:
        """Leave the file as it stands. Raises OSError."""
        prices = [usage.usd for usage in self._usages if usage.usd is not None]
        final = {
            "total_prompt_tokens": sum(usage.prompt for usage in self._usages),
            "total_completion_tokens": sum(usage.completion for usage in self._usages),
            "total_cached_tokens": sum(usage.cached for usage in self._usages),
            "total_cost_usd": sum(prices) if prices and len(prices) == len(self._usages) else None,
            "total_steps": len(self._steps),
        }
        whole = {**self._head, "agent": self._agent, "steps": self._steps, "final_metrics": final}
        if extra:
            whole["extra"] = dict(extra)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        part.write_text(json.dumps(whole, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        part.replace(self._path)

    def _step(self, source: str, message: str) -> dict[str, Any]:
        step: dict[str, Any] = {
            "step_id": len(self._steps) + 1,
            "timestamp": datetime.now(UTC).isoformat(),
            "source": source,
            "message": message,
        }
        self._steps.append(step)
        return step


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
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        arguments = {"malformed": function["arguments"]}
    return {"tool_call_id": call["id"], "function_name": function["name"], "arguments": arguments}


def _text(content: Any) -> str:
    """Return a message's text, as any JSON reader takes it; of parts the texts alone."""
    if isinstance(content, str):
        return content.encode("utf-8", "replace").decode()
    if isinstance(content, Sequence):
        return "\n".join(_text(part.get("text")) for part in content if isinstance(part, Mapping))
    return ""
