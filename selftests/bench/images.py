"""What images cost.

    python selftests/bench/images.py [--tasks N] [--prefix SECONDS] [--built N]

Generates tasks in a folder of its own and asks for their images as the build stage does, on a real base from the
workspace: N tasks over five environments, N tasks whose Dockerfiles differ in the last COPY alone behind a RUN that
takes SECONDS, hits in a process that planned them before and in a new one, and a whole second ``pytest -m build`` over
tasks that are built. The goals stand beside what was measured; the base is made before anything is timed.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pytest_otval.images.model import ImageRequest
from pytest_otval.images.store import Images
from pytest_otval.profile import load_profile
from pytest_otval.settings import RunSettings, Settings, VerdictSettings
from pytest_otval.stages.machine import Machine, own_extensions, probe_flavour
from pytest_otval.workspace import Workspace, default_cluster

TASK = 'schema_version = "1.4"\n[agent]\ntimeout_sec = 60.0\n[verifier]\ntimeout_sec = 60.0\n'
BASE = "FROM debian:bookworm\n"


def write_task(folder: Path, dockerfile: str, content: str) -> Path:
    """Write a task whose context has one file besides the Dockerfile; return its environment."""
    environment = folder / "environment"
    environment.mkdir(parents=True)
    (folder / "task.toml").write_text(TASK)
    (folder / "instruction.md").write_text("Write x to /app/answer.\n")
    (folder / "tests").mkdir()
    (folder / "tests" / "test.sh").write_text("#!/bin/bash\necho 0 > /logs/verifier/reward.txt\n")
    (environment / "Dockerfile").write_text(dockerfile)
    (environment / "data.txt").write_text(content)
    return environment


def ensure_all(images: Images, environments: Sequence[Path]) -> tuple[float, set[str]]:
    """Return the seconds that the images of all environments took, and their keys."""
    began = time.monotonic()
    keys = {images.ensure(ImageRequest(environment, None, 600.0)).key for environment in environments}
    return time.monotonic() - began, keys


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and those it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measure_builds(machine: Machine, root: Path, tasks: int, prefix: float) -> list[Path]:
    """Time builds that share all and builds that share all but the last COPY; return the latter's environments."""
    mark = root.name
    same = [write_task(root / f"same-{n}", f"{BASE}RUN echo {mark} {n % 5} > /env\n", "x") for n in range(tasks)]
    seconds, keys = ensure_all(machine.images, same)
    print(f"{tasks} tasks over 5 environments: {len(keys)} builds (goal 5), {seconds:.1f} s")
    head = f"{BASE}RUN sleep {prefix:g}; echo {mark} > /env\nCOPY data.txt /app/\n"
    last = [write_task(root / f"last-{n}", head, f"{n}\n") for n in range(tasks)]
    seconds, keys = ensure_all(machine.images, last)
    each = (seconds - prefix) / tasks
    print(
        f"{tasks} tasks over a prefix of {prefix:g} s: {len(keys)} images, {seconds:.1f} s, {each:.3f} s each beyond it"
    )
    print(f"{'':4}goal {prefix:g} s + {tasks} x 0.1 s = {prefix + tasks * 0.1:.1f} s")
    return last


def measure_hits(machine: Machine, fresh: Images, environments: Sequence[Path]) -> None:
    """Time hits where the plan is known, and where it is made first."""
    for name, images in (("planned before", machine.images), ("not planned before", fresh)):
        times = []
        for environment in environments:
            began = time.perf_counter()
            images.ensure(ImageRequest(environment, None, 600.0))
            times.append(time.perf_counter() - began)
        print(f"hit, {name}: {statistics.median(times) * 1000:.2f} ms (goal 2 ms)")


def measure_stage(root: Path, number: int) -> None:
    """Time a second ``pytest -m build`` over tasks that are built."""
    tasks = root / "datasets" / "built" / "tasks"
    for n in range(number):
        write_task(tasks / f"t{n:05}", f"{BASE}COPY data.txt /app/\n", f"{n}\n")
    (root / "pytest.ini").write_text("[pytest]\n")
    argv = [sys.executable, "-m", "pytest", str(root / "datasets"), "-m", "build", "-q", "-n0", f"--rootdir={root}"]
    for what in ("first", "second"):
        began, used = time.monotonic(), cpu_seconds()
        output = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False).stdout
        last = output.strip().splitlines()[-1]
        print(f"build stage over {number} tasks, {what}: {time.monotonic() - began:.1f} s, ", end="")
        print(f"{cpu_seconds() - used:.1f} s CPU{' (goal 5 s)' if what == 'second' else ''}: {last}")


def main() -> None:
    """Measure, with what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--prefix", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--built", type=int, default=1000, metavar="N")
    chosen = parser.parse_args()
    workspace = Workspace.from_environment()
    profile = load_profile(default_cluster())
    flavour, _ = probe_flavour(workspace, profile)
    with tempfile.TemporaryDirectory(prefix="otval-bench-") as scratch:
        root = Path(scratch)
        settings = Settings(RunSettings(root / "run", profile.name), VerdictSettings(flavour=flavour))
        machine = Machine(settings, workspace, profile, own_extensions())
        again = Machine(settings, workspace, profile, own_extensions())
        try:
            machine.images.ensure(ImageRequest(write_task(root / "base", BASE, "x"), None, 600.0))
            last = measure_builds(machine, root, chosen.tasks, chosen.prefix)
            measure_hits(machine, again.images, last)
        finally:
            machine.close()
            again.close()
        measure_stage(root, chosen.built)


if __name__ == "__main__":
    main()
