"""Runs with a ledger, for the tests of reports."""

from __future__ import annotations

from pathlib import Path

from pytest_otval.core import REASONS, node_id
from pytest_otval.ledger import Ledger, Line, write_run

IMAGE = {"key": "k" * 64, "content": "c" * 64, "base": "debian:bookworm"}


def line(task: str | None = "a", stage: str = "oracle", reason: str = "expected", **fields) -> Line:
    """Return a result line."""
    facts = {
        "kind": "result",
        "id": node_id("demo", task, stage),
        "task_digest": f"sha256:{task}",
        "stage": stage,
        "attempt": 0,
        "verdict": str(REASONS[reason].verdict),
        "reason": reason,
        "settings_digest": "s" * 64,
        "flavour": "userns",
        "network": "task",
        "seconds": {"total": 1.0},
        "time": "2026-01-01T00:00:00.000+00:00",
    }
    return Line(**{**facts, **fields})


REASON = {"+": "expected", "-": "unsolved", "x": "no-reward", "!": "endpoint-failed"}
"""Of an attempt that is solved, unsolved, invalid, an error."""


def attempt(outcome: str, task: str = "a", model: str = "m", number: int = 0, **told) -> Line:
    """Return the result line of an attempt; ``told`` is of its trajectory, and fields of the line."""
    reason = REASON[outcome]
    fields = {name: told.pop(name) for name in tuple(told) if name in Line.__slots__}
    statistics = {"steps": 5, "commands": 4, "kinds": {"edit": 2}, "protected": [], **told.pop("statistics", {})}
    trajectory = {"finish": "submitted", "prompt_tokens": 90, "completion_tokens": 10, "usd": 0.5, **told}
    score = {"+": 1.0, "-": 0.0}.get(outcome)
    return line(
        task,
        **{
            "id": node_id("demo", task, f"teacher[{model}-{number}]"),
            "stage": "teacher",
            "reason": reason,
            "model": model,
            "attempt": number,
            "score": score,
            "rewards": None if score is None else {"reward": score},
            "image": IMAGE,
            "trajectory": {**trajectory, "statistics": statistics},
            **fields,
        },
    )


def attempts(outcomes: str, task: str = "a", model: str = "m", **told) -> list[Line]:
    """Return a line for each letter."""
    return [attempt(outcome, task, model, number, **told) for number, outcome in enumerate(outcomes)]


def make_run(run: Path, *lines: Line, k: int = 1, **writers: list[Line]) -> Path:
    """Write a run folder: the lines by one writer, or by several. ``k``: attempts that were planned at a task."""
    settings = {"settings": {"rules": "default", "agent": "tools"}, "run_settings": {"k": k}}
    write_run(run, {"args": ["datasets/demo"], "flavour": "userns", **settings})
    for writer, of_writer in {"main": lines, **writers}.items():
        ledger = Ledger(run, writer)
        for one in of_writer:
            ledger.write(one)
        ledger.close()
    return run
