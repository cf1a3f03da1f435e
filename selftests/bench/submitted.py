"""What a cluster adds to real trials: here with two workers, and by a real Slurm on two nodes with one core each.

    python -m selftests.bench.submitted [TRIALS]

As root, or with a local Slurm in $SLURM_CONF and $LOCALSLURM_SHARED; $OT_WORKSPACE has the base image.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

from pytest_otval.images.locks import half_name
from pytest_otval.ledger import read_ledger
from selftests.cluster.submitted import Site, ended, results
from selftests.localslurm import any_localslurm

TASK = "answer-file"
TOP = 'image_sources = ["bootstrap"]\n'


def main(trials: int) -> None:
    """Print seconds and seconds of an item, and the files that each run left."""
    with any_localslurm() as slurm:
        site = Site.make(slurm, f"bench-{half_name(Path('x')).name.rpartition('.')[2]}")
        store = Path(os.environ["OT_WORKSPACE"]) / "images"
        for file in (*store.glob("[0-9a-f]*"), *store.glob("toolbox*")):
            shutil.copy(file, site.root / "ws" / "images")
        site.real_dataset([TASK], [])
        for file in store.glob("[0-9a-f]*"):
            shutil.copy(file, site.root / "ws" / "images")
        folder = site.root / "datasets" / "demo" / "tasks"
        for number in range(trials // 2):
            shutil.copytree(folder / TASK, folder / f"task-{number:04}")
        shutil.rmtree(folder / TASK)
        site.own()
        profile = site.profile("bench", TOP)
        words = ("-m", "oracle or noop", "-q", f"--otval-cluster={profile}")
        ended(site.pytest("-m", "build", "--otval-limit=1", f"--otval-cluster={profile}", stub=False))
        for name, start in (
            ("here, -n 2", lambda run: site.pytest(f"--otval-out={run}", *words, "-n", "2", stub=False)),
            (
                "two nodes",
                lambda run: site.submit(
                    run, *words, "--otval-wait", "--otval-shards=2", "--otval-cpus=1", stub=False, profile=profile
                ),
            ),
        ):
            run = site.run(name.partition(",")[0].replace(" ", "-"))
            began = time.monotonic()
            outcome = ended(start(run))
            took = time.monotonic() - began
            assert outcome.status == 0, outcome.output[-2000:] + outcome.errors
            count = len(results(run))
            stages = sum(line["seconds"]["total"] for line in read_ledger(run) if line["kind"] == "result")
            files = sum(len(found) for _, _, found in os.walk(run))
            print(f"{name:12} {took:7.1f} s  {took / count:.3f} s an item  stages {stages:7.1f} s  {files} files")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
