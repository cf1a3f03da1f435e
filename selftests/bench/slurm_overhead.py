"""What an item costs more in jobs of Slurm than on this machine.

    python selftests/bench/slurm_overhead.py [TASKS] [--submit PROFILE] [--shards N] [--cpus N] [--rounds N]

Makes TASKS small tasks (default 250) and runs oracle and noop of each, in turn with ``-n`` and as jobs that are waited
for, with as many workers in all. Prints wall seconds, the mean of the items' own seconds, and the difference by item.
Needs a workspace that the nodes see, and a Slurm, as ``scripts/localslurm.sh`` starts one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import fmean

from incremental import make

from pytest_otval.ledger import read_ledger


def run(root: Path, words: list[str], out: Path) -> tuple[float, float, int]:
    """Run pytest; return wall seconds, the mean of the items' own seconds, and the number of files of the run."""
    command = [sys.executable, "-P", "-m", "pytest", "datasets/again", "-q", "-m", "oracle or noop"]
    began = time.monotonic()
    words = [*command, "-p", "no:cacheprovider", f"--otval-out={out}", *words]
    subprocess.run(words, cwd=root, check=True, stdout=subprocess.DEVNULL)
    wall = time.monotonic() - began
    lines = [line for line in read_ledger(out) if line["kind"] == "result"]
    return wall, fmean(line["seconds"]["total"] for line in lines), sum(path.is_file() for path in out.rglob("*"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="?", type=int, default=250)
    parser.add_argument("--submit", default="localslurm")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--cpus", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1)
    chosen = parser.parse_args()
    workers, items = chosen.shards * chosen.cpus, 2 * chosen.tasks
    jobs = [f"--otval-submit={chosen.submit}", f"--otval-shards={chosen.shards}", f"--otval-cpus={chosen.cpus}"]
    ways = {f"-n {workers}": ["-n", str(workers)], f"{chosen.shards} jobs": [*jobs, "--otval-wait"]}
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory(dir=os.environ["OT_WORKSPACE"]) as outs:
        make(Path(scratch), chosen.tasks)
        for number in range(chosen.rounds):
            for name, words in ways.items():
                wall, mean, files = run(Path(scratch), words, Path(outs) / f"{number}-{name.replace(' ', '')}")
                more = wall * workers / items - mean
                print(
                    f"{name:8} {wall:7.1f} s; an item {mean:.2f} s of its own, {more:.2f} s more; {files} files",
                    flush=True,
                )


if __name__ == "__main__":
    main()
