"""What the static checks cost.

    python selftests/bench/static.py [FOLDER] [--tasks N] [--seed N] [--top N]

Checks N tasks (default 500) drawn from all those below FOLDER, else N copies of the demonstration tasks that differ in
every file, so that no result can be taken from another task's. Prints tasks per CPU second, the parsers that are
started included, beside the goal, then the largest resident set, and the checks that took most. What several checks
share, as the parsed scripts of a task, counts for the first that asks. The last line is a second look with the cache.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_otval.checks.allow import DatasetAllows
from pytest_otval.checks.cache import FindingsCache, Subject
from pytest_otval.checks.registry import Check, all_checks, run_checks
from pytest_otval.checks.version import checks_version
from pytest_otval.task.digest import task_digest
from pytest_otval.task.load import load_task

DEMO = Path(__file__).parents[2] / "datasets" / "demo" / "tasks"
GOAL = 100
"""Tasks per CPU second."""


def tasks_below(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        if "task.toml" in files:
            folders.clear()
            yield Path(root)


def drawn(folder: Path, number: int, seed: int) -> list[Path]:
    found = sorted(tasks_below(folder))
    return random.Random(seed).sample(found, min(number, len(found)))


def generated(folder: Path, number: int) -> list[Path]:
    """Copy the demonstration tasks again and again, with a comment of its own in each text."""
    demo = sorted(path for path in DEMO.iterdir() if (path / "task.toml").is_file())
    made = []
    for index in range(number):
        target = folder / f"{demo[index % len(demo)].name}-{index}"
        shutil.copytree(demo[index % len(demo)], target)
        for path in target.rglob("*"):
            if path.suffix in (".sh", ".py", ".toml") or path.name == "Dockerfile":
                path.write_bytes(path.read_bytes() + f"# {index}\n".encode())
        made.append(target)
    return made


def cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def timed(check: Check, spent: Counter[str]) -> Check:
    def look(context: Any) -> Iterator[Any]:
        began = cpu_seconds()
        places = list(check.look(context))
        spent[check.id] += cpu_seconds() - began
        yield from places

    return replace(check, look=look)


def measure(what: str, tasks: list[Path], ask: Callable[[Path], object]) -> None:
    began, wall = cpu_seconds(), time.monotonic()
    for task in tasks:
        ask(task)
    spent = cpu_seconds() - began
    print(
        f"{what:10}{len(tasks) / spent:8.0f} tasks per CPU second (goal {GOAL}); {spent / len(tasks) * 1000:6.2f} ms "
        f"of CPU, {(time.monotonic() - wall) / len(tasks) * 1000:6.2f} ms a task"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--top", type=int, default=10)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if chosen.folder is None:
            tasks = generated(Path(scratch) / "tasks", chosen.tasks)
        else:
            tasks = drawn(chosen.folder, chosen.tasks, chosen.seed)
        spent: Counter[str] = Counter()
        checks = [timed(check, spent) for check in all_checks().values()]
        run_checks(load_task(tasks[0], "bench"), None, checks)
        spent.clear()
        cache = FindingsCache(Path(scratch) / "cache", checks_version(all_checks().values()) or "none")

        def subject(task: Path) -> Subject:
            return Subject("bench", task.name, task_digest(task), "required", DatasetAllows())

        def first(task: Path) -> None:
            cache.put(subject(task), run_checks(load_task(task, "bench"), None, checks))

        measure("first", tasks, first)
        print(f"{'':10}{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:8.0f} MB resident at most")
        for name, seconds in spent.most_common(chosen.top):
            print(f"{'':10}{seconds / len(tasks) * 1000:8.2f} ms  {name}")
        cache.close()
        measure("second", tasks, lambda task: cache.get(subject(task)))


if __name__ == "__main__":
    main()
