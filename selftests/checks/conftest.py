"""A minimal sound task, and ways to break it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pytest_otval.checks.registry import run_checks
from pytest_otval.core import Finding
from pytest_otval.task.load import load_task

SOUND = {
    "task.toml": 'schema_version = "1.4"\n[agent]\ntimeout_sec = 60\n[verifier]\ntimeout_sec = 60\n'
    "[environment]\ncpus = 1\nmemory_mb = 512\n",
    "instruction.md": "Write 42 to /app/answer.txt.\n",
    "environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\n",
    "solution/solve.sh": "#!/bin/bash\n"
    "# The reference solution of a task that a shell can do alone.\n"
    "echo 42 > /app/answer.txt\n",
    "tests/test.sh": "#!/bin/bash\n"
    "if pytest /tests/test_outputs.py; then\n"
    "  echo 1 > /logs/verifier/reward.txt\n"
    "else\n"
    "  echo 0 > /logs/verifier/reward.txt\n"
    "fi\n",
    "tests/test_outputs.py": "from pathlib import Path\n\n\n"
    "def test_answer():\n"
    '    assert Path("/app/answer.txt").read_text().strip() == "42"\n',
}

Edit = str | bytes | tuple[str, str] | None
"""What a file becomes: a text, bytes, ``("link", target)``, ``("fifo", "")``, ``("0644", text)``; None removes it."""


class _Settings:
    def __init__(self, oracle: str) -> None:
        self.oracle = oracle


def write_task(folder: Path, edits: Mapping[str, Edit]) -> None:
    """Write the sound task with edits. Scripts are executable unless their mode is given."""
    for name, content in {**SOUND, **edits}.items():
        path = folder / name
        if content is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        mode = 0o755 if path.suffix == ".sh" else 0o644
        match content:
            case None:
                continue
            case ("link", target):
                path.symlink_to(target)
                continue
            case ("fifo", _):
                os.mkfifo(path)
                continue
            case (octal, str() as text):
                path.write_text(text)
                mode = int(octal, 8)
            case bytes():
                path.write_bytes(content)
            case str():
                path.write_bytes(content.encode())
        path.chmod(mode)


Look = Callable[..., tuple[Finding, ...]]


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """Write the sound task with edits, and return what the checks find in it."""

    def run(edits: Mapping[str, Edit] | None = None, oracle: str = "required") -> tuple[Finding, ...]:
        folder = tmp_path / "task"
        write_task(folder, edits or {})
        return run_checks(load_task(folder, "data"), _Settings(oracle))

    return run
