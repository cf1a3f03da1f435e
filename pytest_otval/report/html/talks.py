"""Trajectories as a person reads them: messages, commands and outputs, each of a bounded length."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pytest_otval.evidence import EvidenceError
from pytest_otval.report.text import clean, one_line
from pytest_otval.report.trajectory import Step, Trajectory, trajectories

MOST_TEXT = 4000
"""Characters of one message or output: its first and last half."""
MOST_STEPS = 300
"""Of a trajectory: its first and last half."""
MOST_CALLS = 20
"""Of one message."""


def talks(run: Path, place: str) -> list[dict[str, Any]]:
    """Return what is shown of the trajectories in an answer's evidence; what cannot be read is said."""
    found: list[dict[str, Any]] = []
    try:
        for name, trajectory in trajectories(run, place):
            found.append(_talk(name, trajectory))
    except (EvidenceError, OSError) as error:
        found.append({"title": one_line(str(error), 300), "steps": []})
    return found or [{"title": "its evidence holds no trajectory", "steps": []}]


def _talk(name: str, trajectory: Trajectory) -> dict[str, Any]:
    agent = trajectory.agent
    title = one_line(f"{f'step {name}, ' if name else ''}agent {agent.name} {agent.version}", 200)
    return {"title": title, "steps": list(_steps(trajectory.steps))}


def _steps(steps: Sequence[Step]) -> Iterator[dict[str, Any]]:
    half = MOST_STEPS // 2
    left_out = max(0, len(steps) - 2 * half)
    for number, step in enumerate(steps, 1):
        if left_out and half < number <= len(steps) - half:
            if number == half + 1:
                yield {"who": "", "text": f"[{left_out} messages are left out here]"}
            continue
        yield _shown(number, step)


def _shown(number: int, step: Step) -> dict[str, Any]:
    tokens = step.metrics.prompt_tokens + step.metrics.completion_tokens
    shown = {
        "who": f"{number} {step.source}",
        "text": shortened(step.message),
        "thought": shortened(step.reasoning_content),
        "calls": list(_calls(step)),
        "note": ", ".join(_notes(step, tokens)),
    }
    return {name: value for name, value in shown.items() if value}


def _notes(step: Step, tokens: int) -> Iterator[str]:
    if tokens:
        yield f"{tokens} tokens"
    if why := step.extra.get("malformed"):
        yield one_line(f"not understood: {why}", 300)
    if step.extra.get("not_sent_back"):
        yield "not sent back to the model"
    if (left := len(step.tool_calls) - MOST_CALLS) > 0:
        yield f"{left} more calls"


def _calls(step: Step) -> Iterator[dict[str, Any]]:
    outputs = {output.source_call_id: output.content for output in step.outputs}
    ended = step.extra.get("commands")
    # Calls that were not understood have no end, so only where all ran is it known which end is whose.
    ends = ended if isinstance(ended, list) and len(ended) == len(step.tool_calls) else [None] * len(step.tool_calls)
    for call, end in list(zip(step.tool_calls, ends, strict=True))[:MOST_CALLS]:
        command = call.arguments.get("command")
        only_that = isinstance(command, str) and len(call.arguments) == 1
        yield {
            "tool": one_line(call.function_name, 60),
            "command": shortened(str(command) if only_that else json.dumps(call.arguments, ensure_ascii=False)),
            "output": shortened(outputs.get(call.tool_call_id, "")),
            "end": _end(end),
        }


def _end(end: Any) -> str:
    if not isinstance(end, dict):
        return ""
    words = ["timed out" if end.get("timed_out") else f"status {end.get('status')}"]
    if isinstance(seconds := end.get("seconds"), int | float):
        words.append(f"{seconds:.1f} s")
    return one_line(", ".join(words), 100)


def shortened(text: str) -> str:
    """Return the beginning and end of a text, clean."""
    half, left_out = MOST_TEXT // 2, len(text) - MOST_TEXT
    if left_out > 0:
        text = f"{text[:half]}\n[{left_out} characters are left out here]\n{text[-half:]}"
    return clean(text)
