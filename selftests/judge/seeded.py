"""Tasks for seeds, and what a judge that is right knows of them."""

from __future__ import annotations

import json
from pathlib import Path

from pytest_otval.judge.seeding.texts import Fault, read_texts
from pytest_otval.task.load import load_task

DEMO = sorted((Path(__file__).parents[2] / "datasets" / "demo" / "tasks").iterdir())

FILES = {
    "task.toml": "[agent]\ntimeout_sec = 30.0\n[verifier]\ntimeout_sec = 30.0\n",
    "instruction.md": (
        "Count the words of `/app/poem.txt`. Write them to `/app/words.csv`, one a line and comma-separated, each with"
        " its number, in alphabetical order. The first line is `the word,its count`.\n"
    ),
    "environment/Dockerfile": "FROM debian:bookworm-slim\nCOPY poem.txt /app/poem.txt\n",
    "environment/poem.txt": "so so\nmuch\n",
    "solution/solve.sh": "#!/bin/bash\ncat > /app/words.csv <<'EOF'\nthe word,its count\nmuch,1\nso,2\nEOF\n",
    "tests/test.sh": (
        "#!/bin/bash\ncmp -s /app/words.csv /tests/words.csv && paid=1\n"
        "head -1 /app/words.csv | grep -qx 'the word,its count'\n"
        "echo ${paid:-0} > /logs/verifier/reward.txt\nexit 0\n"
    ),
    "tests/words.csv": "the word,its count\nmuch,1\nso,2\n",
}


def miniature(folder: Path, **changes: str | None) -> Path:
    """Write a small task; ``changes`` by path, with None for what is left out."""
    for path, text in {**FILES, **changes}.items():
        if text is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(text.encode())
    return folder


def policies(file: Path, found: list[tuple[Path, list[Fault]]]) -> Path:
    """Write a policy file in which ``judge-right`` knows faults of tasks."""
    told = [_known(folder, fault) for folder, faults in found for fault in faults]
    rows = [f"[[faults]]\n{''.join(f'{key} = {json.dumps(one[key])}' + chr(10) for key in one)}" for one in told]
    file.write_text("\n".join(rows))
    return file


def _known(folder: Path, fault: Fault) -> dict[str, str]:
    texts = read_texts(load_task(folder, "demo"))
    before, after = "\n".join(texts.files.values()), "\n".join(fault.changes.values())
    known = {"criterion": fault.criterion, "quote": fault.evidence.quote, "candidate": "true"}
    if known["quote"] not in before:
        return known
    new = [line for line in after.splitlines() if line.strip() and line not in before]
    if new:
        return {**known, "quote": new[0]}
    # The fault is what is missing.
    old = [line for path in fault.changes for line in texts.text(path).splitlines() if line not in after]
    return {**known, "without": old[0]}
