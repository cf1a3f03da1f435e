"""What the checks find in collections of tasks, and a draw of findings to be read.

    python selftests/checks/corpus.py FOLDER... [--draw N] [--seed N] [--per-check N] [--severity error]
        [--leave-out FILE]

Checks every task below the folders with as many processes as there are cores. Prints how many findings and tasks each
check has, by severity, and the tasks that took longer than two seconds; a check that crashes ends it. With ``--draw``
it ends with N findings of one severity drawn at random, at most ``--per-check`` of each check, as the rows of a table.
A line of ``--leave-out`` is a check's id and the end of a task's path, for what only the snapshot of a collection
lacks.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

from pytest_otval.checks.registry import run_checks
from pytest_otval.core import Finding, Severity
from pytest_otval.task.load import load_task

SLOW_SECONDS = 2

Found = tuple[Path, float, tuple[Finding, ...]]


def tasks_below(folder: Path) -> Iterator[Path]:
    """Yield the folders that hold a task.toml; nothing below one of them is a task of its own."""
    for root, folders, files in os.walk(folder):
        if "task.toml" in files:
            folders.clear()
            yield Path(root)


def look(task: Path) -> Found:
    """Return a task's findings and the CPU seconds they took."""
    began = time.process_time()
    findings = run_checks(load_task(task, "corpus"))
    return task, time.process_time() - began, findings


def drawn(rows: Iterable[tuple[Path, Finding]], number: int, per_check: int, seed: int) -> list[tuple[Path, Finding]]:
    """Return ``number`` findings, or fewer, with at most ``per_check`` of each check and one of each task and check."""
    shuffled = sorted(rows, key=lambda row: (str(row[0]), row[1].check, row[1].path, row[1].line or 0))
    random.Random(seed).shuffle(shuffled)
    taken: Counter[str] = Counter()
    seen: set[tuple[str, Path]] = set()
    chosen = []
    for task, finding in shuffled:
        if taken[finding.check] < per_check and (finding.check, task) not in seen and len(chosen) < number:
            taken[finding.check] += 1
            seen.add((finding.check, task))
            chosen.append((task, finding))
    return chosen


def left_out(patterns: list[list[str]], task: Path, finding: Finding) -> bool:
    """Whether a line of ``--leave-out`` names the finding."""
    return any(finding.check == check and fnmatchcase(str(task), f"*{end}") for check, end in patterns)


def main() -> None:
    """Check the folders that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--per-check", type=int, default=5)
    parser.add_argument("--severity", type=lambda name: Severity[name.upper()], default=Severity.ERROR)
    parser.add_argument("--leave-out", type=Path)
    chosen = parser.parse_args()
    patterns = [line.split(None, 1) for line in chosen.leave_out.read_text().splitlines()] if chosen.leave_out else []
    tasks = sorted({task for folder in chosen.folders for task in tasks_below(folder)})
    findings: Counter[tuple[Severity, str]] = Counter()
    having: defaultdict[tuple[Severity, str], set[Path]] = defaultdict(set)
    of_interest: list[tuple[Path, Finding]] = []
    slow: list[tuple[float, Path]] = []
    began, spent = time.monotonic(), 0.0
    with ProcessPoolExecutor() as pool:
        for task, seconds, found in pool.map(look, tasks, chunksize=20):
            spent += seconds
            if seconds > SLOW_SECONDS:
                slow.append((seconds, task))
            for finding in found:
                kind = (finding.severity, finding.check)
                findings[kind] += 1
                having[kind].add(task)
                if finding.severity is chosen.severity and not left_out(patterns, task, finding):
                    of_interest.append((task, finding))
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{len(tasks)} tasks, {spent:.0f} s of CPU, {time.monotonic() - began:.0f} s, {memory:.0f} MB at most")
    for severity in (Severity.ERROR, Severity.WARNING, Severity.INFO):
        ids = sorted((name for kind, name in findings if kind is severity), key=lambda name: -findings[severity, name])
        total = sum(findings[severity, name] for name in ids)
        print(f"\n{severity.name.lower()}: {total} findings of {len(ids)} checks\n")
        print("| check | findings | tasks |\n|---|---|---|")
        for name in ids:
            print(f"| `{name}` | {findings[severity, name]} | {len(having[severity, name])} |")
    for seconds, task in sorted(slow, reverse=True):
        print(f"slow: {seconds:.1f} s {task}")
    if chosen.draw:
        name = chosen.severity.name.lower()
        print(f"\n{chosen.draw} findings ({name}), seed {chosen.seed}, at most {chosen.per_check} of a check\n")
        for task, finding in drawn(of_interest, chosen.draw, chosen.per_check, chosen.seed):
            print(f"| `{finding.check}` | {task} | {finding.path}:{finding.line or ''} | {finding.message} |")


if __name__ == "__main__":
    main()
