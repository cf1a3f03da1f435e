"""Conversations for training: attempts as messages in OpenAI's form, one JSON line each, with reward and facts.

What the model was told stands there word for word; arguments of calls are the same JSON values, written anew. Answers
that the agent did not send back, as mini-swe-agent does with those it cannot parse, are not in it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_otval.evidence import EvidenceError
from pytest_otval.llm.attempts import Attempt
from pytest_otval.report.attempts import attempt_lines_of
from pytest_otval.report.results import Results
from pytest_otval.report.trajectory import Step, Trajectory, trajectories


@dataclass
class Exported:
    """What came of an export."""

    conversations: int = 0
    complaints: list[str] = field(default_factory=list)
    """Attempts that are not in it, and why."""


def export_messages(results: Results, path: Path) -> Exported:
    """Write the conversations of a run's attempts, but of errors, which are none; the file is there when all are.

    An attempt at a task of several steps is a line for each step that was come to. Raises OSError, OtvalUsageError.
    """
    exported = Exported()
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            for conversation in _conversations(results, exported.complaints):
                file.write(json.dumps(conversation, allow_nan=False) + "\n")
                exported.conversations += 1
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return exported


def _conversations(results: Results, complaints: list[str]) -> Iterator[dict[str, Any]]:
    for attempt, line in attempt_lines_of(results):
        if attempt.outcome == "error":
            continue
        count = 0
        try:
            for step, trajectory in trajectories(results.run, line["evidence"]):
                yield {**_facts(attempt, line), "step": step, **conversation(trajectory)}
                count += 1
        except (EvidenceError, OSError) as error:
            complaints.append(f"{line['id']}: {error}")
        else:
            if not count:
                complaints.append(f"{line['id']}: its evidence holds no trajectory")


def _facts(attempt: Attempt, line: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "dataset": attempt.dataset,
        "task": attempt.task,
        "model": attempt.model,
        "attempt": attempt.attempt,
        "agent": attempt.agent,
        "task_digest": line["task_digest"],
        "outcome": attempt.outcome,
        "solved": attempt.solved,
        "reward": attempt.reward,
        "rewards": line["rewards"],
        "class": attempt.reason,
        "finish": attempt.finish,
        "truncated": attempt.truncated,
        "flags": list(attempt.flags),
        "tokens": {
            "prompt": attempt.prompt_tokens,
            "completion": attempt.completion_tokens,
            "cached": attempt.cached_tokens,
            "reasoning": attempt.reasoning_tokens,
        },
    }


def conversation(trajectory: Trajectory) -> dict[str, Any]:
    """Return ``messages`` and ``tools`` as ``/chat/completions`` takes them; ``left_out`` counts other answers."""
    kept = [step for step in trajectory.steps if not step.extra.get("not_sent_back")]
    messages = [message for step in kept for message in _messages(step)]
    return {
        "messages": messages,
        "tools": trajectory.agent.tool_definitions,
        "left_out": len(trajectory.steps) - len(kept),
    }


def _messages(step: Step) -> Iterator[dict[str, Any]]:
    if step.source != "agent":
        yield {"role": step.source, "content": step.message}
        return
    message: dict[str, Any] = {"role": "assistant", "content": step.message}
    if step.reasoning_content:
        message["reasoning_content"] = step.reasoning_content
    if step.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.tool_call_id,
                "type": "function",
                "function": {"name": call.function_name, "arguments": json.dumps(call.arguments)},
            }
            for call in step.tool_calls
        ]
    yield message
    for output in step.outputs:
        if output.source_call_id is not None:
            yield {"role": "tool", "tool_call_id": output.source_call_id, "content": output.content}
