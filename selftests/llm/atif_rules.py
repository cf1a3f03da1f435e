"""What ATIF v1.8 asks of a trajectory, by itself: fields of each object, and which of them go together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

NUMBER = (int, float)
FIELDS: Mapping[str, Mapping[str, Any]] = {
    "trajectory": {
        "schema_version": str,
        "session_id": str,
        "agent": "agent",
        "steps": ["step"],
        "final_metrics": "final",
        "extra": dict,
    },
    "agent": {"name": str, "version": str, "model_name": str, "tool_definitions": [dict], "extra": dict},
    "step": {
        "step_id": int,
        "timestamp": str,
        "source": str,
        "model_name": str,
        "message": str,
        "reasoning_content": str,
        "tool_calls": ["call"],
        "observation": "observation",
        "metrics": "metrics",
        "extra": dict,
    },
    "call": {"tool_call_id": str, "function_name": str, "arguments": dict},
    "observation": {"results": ["result"]},
    "result": {"source_call_id": str, "content": str},
    "metrics": {"prompt_tokens": int, "completion_tokens": int, "cached_tokens": int, "cost_usd": NUMBER},
    "final": {
        "total_prompt_tokens": int,
        "total_completion_tokens": int,
        "total_cached_tokens": int,
        "total_cost_usd": (*NUMBER, type(None)),
        "total_steps": int,
    },
}
NEEDED = {
    "trajectory": {"schema_version", "agent", "steps"},
    "agent": {"name", "version"},
    "step": {"step_id", "source", "message"},
    "call": {"tool_call_id", "function_name", "arguments"},
    "observation": {"results"},
}
OF_AGENTS = {"model_name", "reasoning_content", "tool_calls", "metrics"}


def faults_of(trajectory: Any) -> list[str]:
    """Return what is wrong with a trajectory; what we never write is not known here, and so is wrong."""
    faults = list(_shape(trajectory, "trajectory", ""))
    if not faults:
        faults += _sense(trajectory)
    return faults


def _shape(value: Any, kind: Any, where: str) -> Iterator[str]:
    if isinstance(kind, list):
        if not isinstance(value, list):
            yield f"{where} is no list"
            return
        for number, one in enumerate(value):
            yield from _shape(one, kind[0], f"{where}[{number}]")
    elif not isinstance(kind, str):
        if not isinstance(value, kind) or isinstance(value, bool):
            yield f"{where} is {value!r}"
    elif not isinstance(value, dict):
        yield f"{where} is no object"
    else:
        yield from (f"{where}.{name} is missing" for name in NEEDED.get(kind, set()) - set(value))
        for name, one in value.items():
            if name not in FIELDS[kind]:
                yield f"{where}.{name} is unknown"
            else:
                yield from _shape(one, FIELDS[kind][name], f"{where}.{name}")


def _sense(trajectory: Mapping[str, Any]) -> Iterator[str]:
    if trajectory["schema_version"] != "ATIF-v1.8":
        yield "schema_version"
    if not trajectory["steps"]:
        yield "there is no step"
    if trajectory["final_metrics"]["total_steps"] != len(trajectory["steps"]):
        yield "total_steps"
    for number, step in enumerate(trajectory["steps"], 1):
        where = f"step {number}"
        if step["step_id"] != number:
            yield f"{where}: step_id"
        if step["source"] not in ("system", "user", "agent"):
            yield f"{where}: source"
        if step["source"] != "agent" and OF_AGENTS & set(step):
            yield f"{where}: fields of agents"
        datetime.fromisoformat(step["timestamp"])
        known = {call["tool_call_id"] for call in step.get("tool_calls", ())}
        for result in step.get("observation", {"results": ()})["results"]:
            if result.get("source_call_id") not in (None, *known):
                yield f"{where}: source_call_id"
