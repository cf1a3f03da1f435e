"""A node on which a job lives, with a script in place of pytest."""

import os
import subprocess
import sys
import time

from pytest_otval.cluster import submission
from pytest_otval.cluster.job import job_of_environment
from pytest_otval.cluster.job_profile import write_job_profile
from pytest_otval.cluster.job_pytest import CONTRACT
from pytest_otval.cluster.journal import Journal
from pytest_otval.cluster.packing import Packed, packed
from pytest_otval.cluster.request import Request, write_request
from pytest_otval.cluster.shards import write_plan
from pytest_otval.cluster.staging import Staging, write_staging
from pytest_otval.cluster.submission import Array, Element
from pytest_otval.contract.file import sealed, write_contract
from pytest_otval.contract.model import Contract, DatasetPin, TaskPin
from pytest_otval.core import node_id
from pytest_otval.profile import PartitionSection, Profile, SlurmSection

IDS = [node_id("d", task, "oracle") for task in "abcd"]
ANSWER = """mkdir -p "$OUT/ledger"
echo '{"v": 1, "kind": "result", "id": "%s", "verdict": "pass"}' >>"$OUT/ledger/gw0.jsonl"
"""
SLURM = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "0", "SLURMD_NODENAME": "n1"}


class Node:
    """A submitted run, and a node's folder whose ``env/bin/pytest`` is a script."""

    def __init__(self, folder):
        self.folder, self.run = folder / "node", folder / "run"
        self.run.mkdir()
        (folder / "images").mkdir()
        pin = DatasetPin("", (("oracle",),), {task: TaskPin("0" * 64, ()) for task in "abcd"})
        write_contract(self.run / CONTRACT, sealed(Contract(1, "", {}, "own", {}, {"d": pin})))
        write_request(self.run, Request("site", "p", 2, 3600, 60, plugins=("my_plugin",)))
        write_plan(self.run, [[0, 1], [2, 3]])
        self.stage()
        submission._write(self.run, Array(0, (Element(0), Element(1, (3,))), 0.0, "7"))

    def stage(self, **models):
        """Write down what is copied to the node; ``models`` are sections of the profile."""
        partitions = {"p": PartitionSection(cores=4)}
        proxy = {"http_proxy": "http://proxy:80"}
        slurm = SlurmSection(partitions=partitions, job_network="proxy", proxy_env=proxy)
        file = packed(write_job_profile(self.run, Profile(name="site", slurm=slurm, models=models)))
        images, weights = (str(self.folder.with_name(name)) for name in ("images", "models"))
        write_staging(self.run, Staging(Packed("", "", 0), {}, (), images, file, weights))

    def script(self, text):
        program = self.folder / "env" / "bin" / "pytest"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\nOUT={self.folder}/run\necho "$@" >{self.folder}/words\n{text}\n')
        program.chmod(0o755)

    def live(self, element=0, restart=""):
        names = {"SLURM_ARRAY_TASK_ID": str(element), "SLURM_RESTART_COUNT": restart}
        self.job = job_of_environment(self.run, 0, self.folder, {**SLURM, **names})
        return self.job.live()

    @property
    def attempt(self):
        journal = Journal(self.run)
        list(journal.read())
        return journal.attempts[-1]


def answers(*ids):
    return "\n".join(ANSWER % id for id in ids)


RUNS = 'touch "$OUT.begun"'


def start(node, script, ready=None):
    """Start a job as a process of its own, and wait until its pytest has come to ``RUNS``, or ``ready`` is there."""
    node.script(script)
    code = (
        "import os, sys; from pathlib import Path; from pytest_otval.cluster import job\n"
        f"job.SHIP_SECONDS = 0.05\nsys.exit(job.main({str(node.run)!r}, '0', {str(node.folder)!r}))"
    )
    # Without scontrol: a job that wants to go on is not queued again.
    environment = {**os.environ, **SLURM, "PATH": "/usr/bin:/bin"}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, text=True)
    while not (ready or node.folder / "run.begun").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return process
