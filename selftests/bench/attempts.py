"""Statistics of 100,000 attempts: `python selftests/bench/attempts.py [ATTEMPTS]`. Goal: 60 s, 2 GB.

Makes rows of 4 attempts a task, writes them to a Parquet file, and in a process of its own reads that and makes both
tables. Each task is a cluster, which is the most that the bootstrap can have. Then the same attempts as a ledger: the
summary alone, with the Parquet file, and with the pages, each a process of its own; then 2,000 attempts with
trajectories of 50 steps, as pages and as conversations for training. Then what the statistics of one such conversation
cost.
"""

from __future__ import annotations

import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from pytest_otval.core import REASONS, node_id
from pytest_otval.ledger import Ledger, Line, write_run
from pytest_otval.llm.atif import NAME
from pytest_otval.llm.attempts import Attempt, read_attempts, write_attempts
from pytest_otval.llm.chat import Usage
from pytest_otval.llm.steps import Step
from pytest_otval.llm.tables import dataset_rows, task_rows
from pytest_otval.llm.trajectory_statistics import statistics_of

sys.path.insert(0, str(Path(__file__).parents[2]))

from selftests.report.ledgers import attempt
from selftests.report.talks import atif, run_of, step

A_TASK = 4
TALKS = 2000
COMMANDS = (
    "ls -la src && git status",
    "sed -n '{0},{1}p' src/module_{0}.py",
    "grep -rn 'def function_{0}' src | head -20",
    "cat > src/module_{0}.py <<'EOF'\nimport os\n\ndef function():\n    return os.getcwd()\nEOF",
    "python -m pytest -q tests/test_module_{0}.py 2>&1 | tail -5",
    "pip install package-{0}",
)


def conversation(dice: random.Random, steps: int) -> list[Step]:
    usage = Usage(8000, 200)
    return [
        Step(
            dice.choice(COMMANDS).format(dice.randrange(100), 200),
            "a line of output\n" * 50,
            dice.randrange(2),
            False,
            2.0,
            0.5,
            usage,
        )
        for _ in range(steps)
    ]


def rows(count: int) -> Iterator[Attempt]:
    dice = random.Random(0)
    known = [statistics_of(conversation(dice, 50)) for _ in range(100)]
    for number in range(count):
        task, attempt = divmod(number, A_TASK)
        rate = random.Random(task).betavariate(0.5, 0.8)
        solved = dice.random() < rate
        yield Attempt(
            "bench",
            f"organisation__repository-{task:06}",
            "model",
            attempt,
            reward=float(solved),
            solved=solved,
            valid=dice.random() > 0.02,
            finish=dice.choice(("submitted", "steps", "time")),
            prompt_tokens=400_000,
            completion_tokens=10_000,
            seconds={phase: dice.random() for phase in ("queue", "start", "agent", "verifier", "total")},
            statistics=replace(dice.choice(known), steps=dice.randrange(1, 100)),
        )


def tables(path: Path) -> None:
    began = time.perf_counter()
    found = list(read_attempts([path]))
    read = time.perf_counter()
    tasks = task_rows(found, planned=A_TASK)
    per_task = time.perf_counter()
    (dataset,) = dataset_rows(found, tasks)
    ended = time.perf_counter()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"read {read - began:.1f} s, {len(tasks)} tasks {per_task - read:.1f} s, dataset {ended - per_task:.1f} s")
    print(f"all in {ended - began:.1f} s, {memory:.0f} MB")
    for at in dataset.pass_at:
        low, high = at.with_failures, at.without_invalid
        print(
            f"pass@{at.k}: {low.value:.4f} ({low.low:.4f}-{low.high:.4f}) of {low.tasks} tasks;"
            f" without invalid {high.value:.4f} ({high.low:.4f}-{high.high:.4f}) of {high.tasks}"
        )


def make_ledger(run: Path, count: int) -> None:
    """Write a run of ``count`` attempts, each a result line and one of its trial, as the teacher stage writes them."""
    write_run(run, {"settings": {"agent": "mini-swe-agent"}, "run_settings": {"k": A_TASK}})
    ledger = Ledger(run, "main")
    for row in rows(count):
        reason = ("expected" if row.solved else "unsolved") if row.valid else "no-reward"
        told = {name: getattr(row, name) for name in ("finish", "truncated", "prompt_tokens", "completion_tokens")}
        common = {
            "task_digest": "sha256:" + "0" * 64,
            "stage": "teacher",
            "verdict": str(REASONS[reason].verdict),
            "reason": reason,
            "settings_digest": "0" * 64,
            "flavour": "fakeroot-subuid",
            "network": "task",
            "attempt": row.attempt,
            "model": row.model,
            "score": row.reward if row.valid else None,
            "image": {"key": "0" * 64, "content": "0" * 64, "base": "bootstrap:bookworm@ec86f79bd94d"},
            "seconds": row.seconds,
        }
        id = node_id(row.dataset, row.task, f"teacher[model-{row.attempt}]")
        ledger.write(Line("trial", f"{id}#mini-swe-agent/{row.attempt}", **common))
        ledger.write(Line("result", id, trajectory={**told, "statistics": asdict(row.statistics)}, **common))
    ledger.close()


def report(run: Path, *words: str) -> None:
    """Run ``report`` and print what it took."""
    began = time.perf_counter()
    argv = [sys.executable, __file__, "--report", str(run), *words]
    told = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines()
    print(f"report {' '.join(words[::2])}: {time.perf_counter() - began:.1f} s, {told[-1]}")


def make_talks(folder: Path, count: int) -> Path:
    """Write a run of ``count`` attempts with a trajectory each."""
    dice = random.Random(2)
    talks = []
    for number in range(count):
        steps = [
            step(at, message="I look at the next file.", calls=[(one.command, one.output)])
            for at, one in enumerate(conversation(dice, 50), 1)
        ]
        talks.append((attempt("+-"[number % 2], f"task-{number // A_TASK}", number=number % A_TASK), steps))
    return run_of(folder, *((line, {f"agent/{NAME}": atif(*steps)}) for line, steps in talks))


def run_report(words: list[str]) -> None:
    from pytest_otval.__main__ import main

    assert main(["report", *words]) == 0
    used = resource.getrusage(resource.RUSAGE_SELF)
    # ru_maxrss would be that of the process which started this one, where it was larger.
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    print(f"{used.ru_utime + used.ru_stime:.1f} s CPU, {int(peak) / 1024:.0f} MB")


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "attempts.parquet")
        began = time.perf_counter()
        write_attempts(path, rows(count))
        print(
            f"{count} rows made and written in {time.perf_counter() - began:.1f} s: {path.stat().st_size / 1e6:.1f} MB"
        )
        subprocess.run([sys.executable, __file__, "--tables", str(path)], check=True)
        run, pages = Path(folder, "run"), Path(folder, "pages")
        make_ledger(run, count)
        print(f"ledger: {(run / 'ledger/main.jsonl').stat().st_size / 1e6:.0f} MB")
        report(run)
        report(run, "--attempts", str(path))
        report(run, "--html", str(pages))
        files = [file for file in pages.rglob("*") if file.is_file()]
        print(f"pages: {len(files)} files, {sum(file.stat().st_size for file in files) / 1e6:.0f} MB")
        talks = make_talks(Path(folder, "talks"), TALKS)
        print(f"{TALKS} trajectories of 50 steps")
        report(talks, "--html", str(Path(folder, "pages of talks")))
        report(talks, "--export", str(Path(folder, "messages.jsonl")))
    dice = random.Random(1)
    talks = [conversation(dice, 50) for _ in range(50)]
    began = time.perf_counter()
    for talk in talks:
        statistics_of(talk)
    print(f"statistics of a conversation of 50 steps: {(time.perf_counter() - began) / len(talks) * 1000:.1f} ms")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--tables"]:
        tables(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["--report"]:
        run_report(sys.argv[2:])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
