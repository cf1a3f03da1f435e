"""What the static checks cost.

    python selftests/bench/static.py [FOLDER] [--tasks N] [--seed N] [--top N] [--linters]

Checks N tasks (default 500) drawn from all those below FOLDER, else N copies of the demonstration tasks that differ in
every file, so that no result can be taken from another task's. Prints tasks per CPU second, the parsers that are
started included, beside the goal, the largest resident set, a second look with the cache, and the checks that took most
in a run of their own (without what bash used). What several checks share, as the parsed scripts of a task, counts for
the first that asks. With ``--linters`` shellcheck and hadolint are asked too, and tasks of FOLDER are copied so that
every file differs.
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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_otval.checks.allow import DatasetAllows
from pytest_otval.checks.bash_syntax import end_bash
from pytest_otval.checks.cache import FindingsCache, Subject
from pytest_otval.checks.lint import lint_checks
from pytest_otval.checks.registry import Check, all_checks, run_checks
from pytest_otval.checks.version import checks_version
from pytest_otval.task.digest import task_digest
from pytest_otval.task.load import load_task

DEMO = Path(__file__).parents[2] / "datasets" / "demo" / "tasks"
GOAL, GOAL_WITH_LINTERS = 100, 30
"""Tasks per CPU second."""


def tasks_below(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        if "task.toml" in files:
            folders.clear()
            yield Path(root)


def drawn(folder: Path, number: int, seed: int) -> list[Path]:
    found = sorted(tasks_below(folder))
    return random.Random(seed).sample(found, min(number, len(found)))


def copied(tasks: Iterable[Path], folder: Path) -> list[Path]:
    """Copy tasks, with a comment of its own in each text."""
    made = []
    for index, task in enumerate(tasks):
        target = folder / f"{task.name}-{index}"
        shutil.copytree(task, target, symlinks=True, ignore_dangling_symlinks=True)
        for path in target.rglob("*"):
            known = path.suffix in (".sh", ".py", ".toml") or path.name == "Dockerfile"
            if known and path.is_file() and not path.is_symlink():
                path.write_bytes(path.read_bytes() + f"\n# {index} {path.name}\n".encode())
        made.append(target)
    return made


def generated(number: int) -> list[Path]:
    """Return the demonstration tasks again and again."""
    demo = sorted(path for path in DEMO.iterdir() if (path / "task.toml").is_file())
    return [demo[index % len(demo)] for index in range(number)]


def cpu_seconds() -> float:
    end_bash()  # what it used counts once it has ended
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def timed(check: Check, spent: Counter[str]) -> Check:
    def look(context: Any) -> Iterator[Any]:
        began = time.process_time()
        places = list(check.look(context))
        spent[check.id] += time.process_time() - began
        yield from places

    return replace(check, look=look)


def measure(what: str, tasks: list[Path], goal: int, ask: Callable[[Path], object]) -> None:
    began, wall = cpu_seconds(), time.monotonic()
    for task in tasks:
        ask(task)
    spent = cpu_seconds() - began
    print(
        f"{what:10}{len(tasks) / spent:8.0f} tasks per CPU second (goal {goal}); {spent / len(tasks) * 1000:6.2f} ms "
        f"of CPU, {(time.monotonic() - wall) / len(tasks) * 1000:6.2f} ms a task"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--top", type=int, default=10)
    parser.add_argument("--linters", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        tasks = generated(chosen.tasks) if chosen.folder is None else drawn(chosen.folder, chosen.tasks, chosen.seed)
        if chosen.folder is None or chosen.linters:
            tasks = copied(tasks, Path(scratch) / "tasks")
        checks = [*all_checks().values(), *(lint_checks().values() if chosen.linters else ())]
        run_checks(load_task(tasks[0], "bench"), None, checks)
        cache = FindingsCache(Path(scratch) / "cache", checks_version(checks) or "none")

        def subject(task: Path) -> Subject:
            return Subject("bench", task.name, task_digest(task), "required", DatasetAllows())

        def first(task: Path) -> None:
            cache.put(subject(task), run_checks(load_task(task, "bench"), None, checks))

        measure("first", tasks, GOAL_WITH_LINTERS if chosen.linters else GOAL, first)
        print(f"{'':10}{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:8.0f} MB resident at most")
        cache.close()
        measure("second", tasks, GOAL, lambda task: cache.get(subject(task)))
        if chosen.top:
            spent: Counter[str] = Counter()
            asked = [timed(check, spent) for check in all_checks().values()]
            for task in tasks:
                run_checks(load_task(task, "bench"), None, asked)
            for name, seconds in spent.most_common(chosen.top):
                print(f"{'':10}{seconds / len(tasks) * 1000:8.2f} ms  {name}")


if __name__ == "__main__":
    main()
