"""The life of a job, with a script in place of pytest: what it leaves on shared storage however it ends."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from pytest_otval.cluster import job as job_module
from pytest_otval.cluster import submission
from pytest_otval.cluster.job import CONTRACT, TERMINATED, job_of_environment
from pytest_otval.cluster.job_profile import write_job_profile
from pytest_otval.cluster.journal import Journal
from pytest_otval.cluster.packing import Packed, packed
from pytest_otval.cluster.request import Request, write_request
from pytest_otval.cluster.shards import write_plan
from pytest_otval.cluster.staging import Staging, write_staging
from pytest_otval.cluster.submission import Array, Element
from pytest_otval.contract.file import sealed, write_contract
from pytest_otval.contract.model import Contract, DatasetPin, TaskPin
from pytest_otval.core import OtvalUsageError, node_id
from pytest_otval.profile import PartitionSection, Profile, SlurmSection, load_profile

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
        partitions = {"p": PartitionSection(cores=4)}
        proxy = {"http_proxy": "http://proxy:80"}
        profile = Profile(name="site", slurm=SlurmSection(partitions=partitions, job_network="proxy", proxy_env=proxy))
        file = packed(write_job_profile(self.run, profile))
        write_staging(self.run, Staging(Packed("", "", 0), {}, (), str(folder / "images"), file))
        submission._write(self.run, Array(0, (Element(0), Element(1, (3,))), 0.0, "7"))

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


@pytest.fixture
def node(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(job_module, "SHIP_SECONDS", 0.05)
    return Node(tmp_path)


def answers(*ids):
    return "\n".join(ANSWER % id for id in ids)


def test_all_answered(node):
    node.script(answers(*IDS[:2]))
    assert node.live() == 0
    found = node.attempt
    assert (found.node, found.place, found.answers, found.ended, found.fault) == ("n1", (0, 0), 2, True, "")
    assert [path.name for path in (node.run / "ledger").iterdir()] == ["shard-0.7_0.0.jsonl"]


def test_pytest_is_given_the_shard(node):
    node.script(answers(IDS[3]))
    assert node.live(element=1) == 0
    words = (node.folder / "words").read_text().split()
    assert f"--otval-contract={node.folder / CONTRACT}" in words and "--otval-shard=2/2" in words
    assert words[words.index("-n") + 1] == "2" and words[-2:] == ["-p", "my_plugin"]
    assert json.loads((node.folder / "shards.json").read_text())["shards"] == [[0, 1], [3]]


def test_what_is_answered_is_not_asked_again(node):
    node.script(answers(IDS[0]))
    assert node.live() == 1
    node.script(answers(IDS[1]))
    subprocess.run(["rm", "-r", node.folder / "ws", node.folder / "scratch", node.folder / "run"], check=True)
    assert node.live(restart="1") == 0
    assert json.loads((node.folder / "shards.json").read_text())["shards"][0] == [1]
    assert sorted(path.name for path in (node.run / "ledger").iterdir()) == [
        "shard-0.7_0.0.jsonl",
        "shard-0.7_0.1.jsonl",
    ]


def test_a_job_for_which_nothing_is_left_runs_nothing(node):
    node.script(answers(*IDS[:2]))
    node.live()
    (node.folder / "env" / "bin" / "pytest").unlink()
    assert node.live(restart="1") == 0


@pytest.mark.parametrize(
    ("script", "status", "fault", "why"),
    [
        ("exit 1", 1, "node", "pytest ended with 1: 1 items are left"),
        ("echo 'ERROR: c.json no longer holds: 1 difference' >&2; exit 4", 1, "node", ": c.json no longer holds"),
        ("kill -KILL $$", 137, "item", "pytest was killed by SIGKILL: 1 items are left"),
    ],
)
def test_ends_with_items_left(node, script, status, fault, why):
    node.script(f"{answers(IDS[0])}\n{script}")
    assert node.live() == status
    found = node.attempt
    assert (found.fault, found.answers) == (fault, 1) and why in found.why


def test_a_node_that_cannot_be_made_ready(node):
    (node.run / "profile" / "site.toml").write_text("changed = 1\n")
    assert node.live() != 0
    assert node.attempt.fault == "node" and "does not match its checksum" in node.attempt.why


def test_variables_of_pytest(node, monkeypatch):
    for name in ("PYTEST_ADDOPTS", "PYTHONPATH", "VIRTUAL_ENV", "SLURM_EXPORT_ENV"):
        os.environ[name] = "leaks"
    node.script(f"env >{node.folder}/variables\n{answers(*IDS[:2])}")
    node.live()
    seen = dict(line.split("=", 1) for line in (node.folder / "variables").read_text().splitlines() if "=" in line)
    assert not {"PYTEST_ADDOPTS", "PYTHONPATH", "VIRTUAL_ENV", "SLURM_EXPORT_ENV"} & seen.keys()
    assert seen["OT_WORKSPACE"] == str(node.folder / "ws") and seen["OT_CLUSTER"] == "site"
    assert seen["PATH"].startswith(f"{node.folder}/env/bin:") and seen["http_proxy"] == "http://proxy:80"
    profile = load_profile("site", node.folder / "ws")
    assert profile.scratch.stage_images == "always" and "http_proxy" in profile.build.pass_env


RUNS = 'touch "$OUT.begun"'


def start(node, script):
    """Start a job as a process of its own, and wait until its pytest has come to ``RUNS``."""
    node.script(script)
    code = (
        "import os, sys; from pathlib import Path; from pytest_otval.cluster import job\n"
        f"job.SHIP_SECONDS = 0.05\nsys.exit(job.main({str(node.run)!r}, '0', {str(node.folder)!r}))"
    )
    # Without scontrol: a job that wants to go on is not queued again.
    environment = {**os.environ, **SLURM, "PATH": "/usr/bin:/bin"}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, text=True)
    while not (node.folder / "run.begun").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return process


def test_a_job_that_slurm_ends_says_so(node):
    process = start(node, f"{answers(IDS[0])}\n{RUNS}\nexec sleep 60")
    process.send_signal(signal.SIGTERM)
    assert process.wait() == TERMINATED, process.communicate()
    assert (node.attempt.fault, node.attempt.answers) == ("slurm", 1)
    assert not node.folder.exists(), "something is left on the node"
    process.communicate()


def test_near_its_time_limit_no_more_items_start(node):
    until_told = 'while [ ! -e "$OUT/stopped" ]; do mkdir -p "$OUT"; sleep 0.05; done'
    process = start(node, f"{RUNS}\n{until_told}\n{answers(IDS[0])}")
    process.send_signal(signal.SIGUSR2)
    assert process.wait() == 1, process.communicate()
    assert (node.attempt.fault, node.attempt.answers) == ("slurm", 1) and "its time was up" in node.attempt.why
    process.communicate()


def test_outside_of_a_job_there_is_none(node):
    with pytest.raises(KeyError):
        job_of_environment(node.run, 0, node.folder, {})
    with pytest.raises(OtvalUsageError, match="of no use"):
        job_of_environment(node.run, 0, node.folder, {**SLURM, "SLURM_ARRAY_TASK_ID": "2"})
    with pytest.raises(OtvalUsageError, match="cannot be read"):
        job_of_environment(node.run, 9, node.folder, SLURM)
