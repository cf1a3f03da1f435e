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


def make_run(run: Path, *lines: Line, **writers: list[Line]) -> Path:
    """Write a run folder: the lines by one writer, or by several."""
    write_run(run, {"args": ["datasets/demo"], "flavour": "userns", "settings": {"rules": "default"}})
    for writer, of_writer in {"main": lines, **writers}.items():
        ledger = Ledger(run, writer)
        for one in of_writer:
            ledger.write(one)
        ledger.close()
    return run
