"""What handing out work costs: 20,000 items that do nothing, two workers, our scheduler and xdist's own by turns.

    python selftests/bench/schedule.py [ROUNDS] [STAGES]

STAGES is 4 by default: 5,000 tasks; with 1 there are 20,000 tasks with one item each. Prints medians and the ratio; the
goal is at most 1.3.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ITEMS = 20_000

PLUGIN = """
import os
import pytest
from pytest_otval.glue import item, session

item._Item.setup = item._Item.runtest = lambda self: None

def pytest_configure(config):
    from pytest_otval import plugin
    plugin.prepare = lambda config: None

@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if os.environ["BENCH_SCHEDULER"] == "load":
        from xdist.scheduler import LoadScheduling
        return LoadScheduling(config, log)
"""


def run(folder: Path, scheduler: str, marks: list[str]) -> tuple[float, float]:
    """Return wall and CPU seconds of a run."""
    words = [sys.executable, "-P", "-m", "pytest", "-p", "bench_plugin", "-p", "no:cacheprovider", "-qq", "-n2", *marks]
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "OT_WORKSPACE": str(folder / "workspace"),
        "BENCH_SCHEDULER": scheduler,
    }
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(
        [*words, "datasets/bench"], cwd=folder / "project", env=environment, check=True, stdout=subprocess.DEVNULL
    )
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(rounds: int, stages: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "workspace").mkdir()
        (folder / "bench_plugin.py").write_text(PLUGIN)
        for number in range(ITEMS // stages):
            task = folder / "project" / "datasets" / "bench" / "tasks" / f"task-{number:05}"
            (task / "environment").mkdir(parents=True)
            (task / "task.toml").write_text("[agent]\ntimeout_sec = 30.0\n[verifier]\ntimeout_sec = 30.0\n")
            (task / "environment" / "Dockerfile").write_text(f"FROM debian:bookworm-slim\nRUN echo {number % 100}\n")
        marks = [] if stages == 4 else ["-m", "static"]
        times: dict[str, list[tuple[float, float]]] = {"load": [], "ours": []}
        for _ in range(rounds):
            for scheduler, seen in times.items():
                seen.append(run(folder, scheduler, marks))
                print(f"{scheduler}: {seen[-1][0]:.1f} s wall, {seen[-1][1]:.1f} s CPU", flush=True)
    for index, what in enumerate(("wall", "CPU")):
        load, ours = (statistics.median(seen[index] for seen in times[name]) for name in ("load", "ours"))
        print(f"{what}: load {load:.1f} s, ours {ours:.1f} s, ratio {ours / load:.2f}, goal 1.30")


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    main(*[*numbers, *(3, 4)[len(numbers) :]])
