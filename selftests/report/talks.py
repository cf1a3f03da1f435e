"""Attempts with trajectories in their evidence, for the tests of reports."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from pytest_otval.evidence import Archive
from pytest_otval.ledger import Line
from pytest_otval.llm.agents.tools import TOOL
from selftests.report.ledgers import make_run

EVIL = "</script><img src=x onerror=\"document.title='canary'\">\u2028\u202e\x1b[2J\x00--><!--'\"`${1}"


def step(id: int, source: str = "agent", message: str = "", calls: Iterable[tuple[str, str]] = (), **fields) -> dict:
    """Return a step of ATIF; ``calls``: command and output."""
    known = list(calls)
    of_calls = {
        "tool_calls": [
            {"tool_call_id": f"{id}-{at}", "function_name": "shell", "arguments": {"command": command}}
            for at, (command, _) in enumerate(known)
        ],
        "observation": {
            "results": [{"content": output, "source_call_id": f"{id}-{at}"} for at, (_, output) in enumerate(known)]
        },
    }
    return {"step_id": id, "source": source, "message": message, **(of_calls if known else {}), **fields}


def atif(*steps: dict) -> bytes:
    """Return a trajectory file."""
    agent = {"name": "tools", "version": "1", "model_name": "m", "tool_definitions": [TOOL]}
    return json.dumps({"schema_version": "ATIF-v1.8", "session_id": "s", "agent": agent, "steps": steps}).encode()


def run_of(folder: Path, *talks: tuple[Line, dict[str, bytes]]) -> Path:
    """Write a run of attempts, each with the files of its evidence."""
    run = folder / "run"
    archive = Archive(run, "main")
    lines = []
    for number, (line, files) in enumerate(talks):
        source = folder / f"evidence-{number}"
        for name, data in {"result.json": b"{}", **files}.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes(data)
        lines.append(Line.from_dict({**line.as_dict(), "evidence": archive.add(source, f"demo/a/{number}")}))
    archive.close()
    return make_run(run, *lines)
