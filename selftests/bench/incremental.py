"""What it costs to validate 10,000 tasks again after one Dockerfile changed.

    python selftests/bench/incremental.py [TASKS] [--at FOLDER] [-n WORKERS]

Makes TASKS tasks over ten images (default 10,000; kept in FOLDER if given), writes the ledger of a whole run of oracle
and noop (answers are made up, all else is real), changes the Dockerfile in the middle, and runs with ``--otval-reuse``.
Prints when its container started, whose goal is 30 s after the start, and what was asked again. Needs a workspace.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from pytest_otval.ledger import read_ledger

PLUGIN = """
from dataclasses import replace
from pytest_otval.core import StageResult

def answer(machine, question):
    return StageResult("expected", facts={"seconds": {"total": 1.0}, "score": 1.0})

def pytest_configure():
    from importlib import import_module
    from pytest_otval import plugin
    plugin.STAGES = [replace(stage, answer="bench_answers:answer") for stage in plugin.STAGES]
    import_module("pytest_otval.stages.pinned").STAGES = tuple(plugin.STAGES)
"""
FILES = {
    "task.toml": '[environment]\nnetwork_mode = "no-network"\n',
    "instruction.md": "Write 42 to /app/answer.\n",
    "solution/solve.sh": "#!/bin/sh\necho 42 > /app/answer\n",
    "tests/test.sh": "#!/bin/sh\ngrep -qx 42 /app/answer && echo 1 > /logs/verifier/reward.txt"
    " || echo 0 > /logs/verifier/reward.txt\n",
}


def make(root: Path, number: int) -> Path:
    """Make the dataset below ``root`` unless it is there, and return its folder."""
    dataset = root / "datasets" / "again"
    for index in range(number):
        task = dataset / "tasks" / f"task-{index:05}"
        if task.is_dir():
            continue
        for name, text in {**FILES, "environment/Dockerfile": dockerfile(index)}.items():
            (task / name).parent.mkdir(parents=True, exist_ok=True)
            (task / name).write_text(text)
    (dataset / "dataset.toml").write_text('[dataset]\nname = "org/again"\n')
    return dataset


def dockerfile(index: int) -> str:
    return f"FROM debian:bookworm-slim\nWORKDIR /app\nRUN echo {index % 10} > /kind\n"


def run(root: Path, words: list[str]) -> tuple[float, float]:
    """Run pytest; return wall and CPU seconds, those of workers included."""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, "-P", "-m", "pytest", *words], cwd=root, env=environment)
    _, _, used = os.wait4(process.pid, 0)
    return time.monotonic() - began, used.ru_utime + used.ru_stime


def first_container(run: Path, began: datetime) -> float:
    """Return how long after ``began`` the container of an answer started that was not taken from an earlier run."""
    asked = [line for line in read_ledger(run) if line["kind"] == "result" and line["cached_from"] is None]
    starts = [datetime.fromisoformat(line["time"]).timestamp() - line["seconds"]["total"] for line in asked]
    print(f"asked again: {', '.join(line['id'] for line in asked)}")
    return min(starts) - began.timestamp()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="?", type=int, default=10_000)
    parser.add_argument("--at", type=Path, default=None)
    parser.add_argument("-n", default="2")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = (chosen.at or Path(scratch)).absolute()
        dataset = make(root, chosen.tasks)
        (root / "bench_answers.py").write_text(PLUGIN)
        os.environ["OT_SCRATCH"] = scratch
        words = ["datasets/again", "-q", "-m", "oracle or noop", "-p", "no:cacheprovider", "-n", chosen.n]
        wall, cpu = run(root, ["-p", "bench_answers", *words])
        print(f"{chosen.tasks:,} tasks, made-up answers: {wall:.1f} s, {cpu:.1f} s CPU", flush=True)
        middle = chosen.tasks // 2
        changed = dataset / "tasks" / f"task-{middle:05}" / "environment" / "Dockerfile"
        changed.write_text(f"{dockerfile(middle)}RUN echo {time.time_ns()} > /changed\n")
        began, out = datetime.now(UTC), Path(scratch) / "run"
        wall, cpu = run(root, ["--otval-reuse", f"--otval-out={out}", *words])
        print(f"first container after {first_container(out, began):.1f} s (goal 30), {wall:.1f} s, {cpu:.1f} s CPU")


if __name__ == "__main__":
    main()
