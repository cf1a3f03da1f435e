"""What it costs to list tasks.

    python selftests/bench/collect.py [TASKS] [--at FOLDER] [--only WORD] [--workers]

Makes a dataset of TASKS tasks (default 50,000; kept in FOLDER if given, for the next time) and lists it in several
ways, each in a pytest process of its own: our stages and two that a plugin adds, so six items a task. Prints CPU
seconds (of xdist's workers too) beside the goal for 50,000 tasks, and the largest resident set, whose goal is 700 MB.

``--workers`` adds xdist's workers, which all list for themselves, and ``--last-failed``.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.contract.file import sealed, write_contract
from pytest_otval.contract.model import Contract, DatasetPin, TaskPin

CONTRACT = "thousand.json"

PLUGIN = """
from pytest_otval.stages.spec import Stage

def pytest_otval_stages():
    return [Stage(name, "nowhere:answer", "?", by_default=True) for name in ("first_more", "second_more")]
"""


@dataclass
class Case:
    what: str
    args: list[str]
    cpu_goal: float = math.inf


def cases(dataset: str, names: list[str]) -> list[Case]:
    middle = names[len(names) // 2]
    one = f"{dataset}/tasks/{middle}"
    thousand = [f"{dataset}/tasks/{name}/task.toml::oracle" for name in names[:: max(1, len(names) // 1000)]]
    return [
        Case("all", [dataset], 12),
        Case("-m static", [dataset, "-m", "static"], 6),
        Case("-m oracle or noop", [dataset, "-m", "oracle or noop"], 12),
        Case("-k NAME", [dataset, "-k", middle]),
        Case("one task by path", [one], 0.6),
        Case("one task by node id", [f"{one}/task.toml::oracle"], 0.6),
        Case("one task by --otval-tasks", [dataset, "--otval-tasks", middle], 0.6),
        Case("ten by --otval-limit", [dataset, "--otval-limit", "10"]),
        Case("1,000 node ids", thousand),
        Case("1,000 by a contract", [f"--otval-contract={CONTRACT}"], 0.6),
        Case("nothing but the start", ["--version", "--version"]),
    ]


def write_contract_of_some(root: Path, names: list[str]) -> None:
    """Write a contract of 1,000 tasks; digests are wrong, since listing looks at no file of a task."""
    some = names[:: max(1, len(names) // 1000)]
    tasks = {name: TaskPin(f"{number:064x}", ()) for number, name in enumerate(some)}
    pin = DatasetPin(settings="", stages=(("static", "build", "oracle", "noop"),), tasks=tasks)
    whole = Contract(1, "", settings={}, uids="own", versions={}, datasets={"many": pin})
    write_contract(root / CONTRACT, sealed(whole))


def make(root: Path, number: int) -> list[str]:
    """Make a dataset below ``root`` unless it is there, and return the names of its tasks."""
    tasks = root / "datasets" / "many" / "tasks"
    names = [f"org__repo-{index:06}" for index in range(number)]
    if not (tasks / names[-1]).is_dir():
        for name in names:
            folder = tasks / name
            (folder / "tests").mkdir(parents=True)
            (folder / "task.toml").write_text("[agent]\ntimeout_sec = 30.0\n")
        listed = (f'[[tasks]]\nname = "org/{name}"\ndigest = "sha256:{"0" * 64}"\n' for name in names)
        (tasks.parent / "dataset.toml").write_text('[dataset]\nname = "org/many"\n' + "".join(listed))
    return names


def measure(root: Path, args: list[str]) -> tuple[float, float, str]:
    """Run pytest and return its CPU seconds, its largest resident set in MB, and its last line."""
    (root / "bench_stages.py").write_text(PLUGIN)
    environment = {**os.environ, "PYTHONPATH": str(root), "OT_WORKSPACE": str(root), "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-P", "-m", "pytest", "-p", "bench_stages", "-c", "/dev/null", "--rootdir", str(root)]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([*command, *args], cwd=root, env=environment, stdout=output, stderr=output)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        last = output.read().strip().rpartition("\n")[2]
    if process.returncode not in (0, 5):
        last = f"status {process.returncode}: {last}"
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="?", type=int, default=50_000)
    parser.add_argument("--at", type=Path, default=None)
    parser.add_argument("--only", default="")
    parser.add_argument("--workers", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = (chosen.at or Path(scratch)).absolute()
        names = make(root, chosen.tasks)
        write_contract_of_some(root, names)
        todo = [
            Case(case.what, [*case.args, "--co", "-qq", "-p", "no:cacheprovider"], case.cpu_goal)
            for case in cases("datasets/many", names)
        ]
        if chosen.workers:
            todo += [
                Case("-n2 --co", ["-n2", "--co", "-qq", "datasets/many"]),
                Case("-n2, all deselected", ["-n2", "-k", "nothing", "datasets/many"]),
                Case("--lf", ["--lf", "--co", "-qq", "datasets/many"]),
            ]
        print(f"{len(names):,} tasks, 6 stages")
        for case in todo:
            if chosen.only in case.what:
                cpu, megabytes, last = measure(root, case.args)
                goal = f"(goal {case.cpu_goal:g} s)" if case.cpu_goal < math.inf else ""
                print(f"{case.what:26}{cpu:7.2f} s {goal:14}{megabytes:6.0f} MB   {last[-44:]}", flush=True)


if __name__ == "__main__":
    main()
