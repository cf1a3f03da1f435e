"""The life of a job, with a script in place of pytest: what it leaves on shared storage however it ends."""

import json
import os
import signal
import subprocess

import pytest

from pytest_otval.cluster.job import TERMINATED, job_of_environment
from pytest_otval.cluster.job_pytest import CONTRACT
from pytest_otval.cluster.request import Models, Request, write_request
from pytest_otval.core import OtvalUsageError
from pytest_otval.llm.budget import Budget, Spent
from pytest_otval.profile import load_profile
from selftests.cluster.nodes import IDS, RUNS, SLURM, answers, start


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


def test_pytest_is_told_of_models(node):
    write_request(node.run, Request("site", "p", 2, 3600, 60, models=Models(("m",), "http://host/v1")))
    node.script(answers(*IDS[:2]))
    assert node.live() == 0
    assert "--otval-base-url=http://host/v1" in (node.folder / "words").read_text().split()


SPEND = """mkdir -p "$OUT/budget"
echo '{"model": "m", "prompt": 3, "completion": 4, "usd": null}' >>"$OUT/budget/1.jsonl"
"""


def test_what_is_spent_is_told_and_no_job_begins_when_all_is(node):
    write_request(node.run, Request("site", "p", 2, 3600, 60, models=Models(budget_tokens=7)))
    node.script(f"{SPEND}{answers(IDS[0])}\nexit 8")
    assert node.live() == 0
    spent = "the budget of 7 tokens is spent: 7 were used: 1 items are left"
    assert (node.attempt.ended, node.attempt.fault, node.attempt.why) == (True, "", spent)
    assert Budget(node.run).spent() == Spent(1, 7, 0)
    (node.folder / "env" / "bin" / "pytest").unlink()
    assert node.live(element=1) == 0
    assert (node.attempt.shard, node.attempt.why) == (1, spent) and node.attempt.started == set()


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
