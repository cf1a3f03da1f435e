"""Attempts in real containers, at a real server: what commands may do, what they cannot, and what becomes of it."""

import json
import os
from dataclasses import dataclass

import pytest

from pytest_otval.core import StageResult
from pytest_otval.llm import session as sessions
from pytest_otval.settings import RunSettings, Settings, VerdictSettings
from pytest_otval.stages.machine import Machine, own_extensions
from pytest_otval.stages.question import Question
from pytest_otval.stages.registry import ask
from pytest_otval.stages.spec import TEACHER
from pytest_otval.task.dataset import DatasetSettings
from selftests.fakes import make_task
from selftests.llm.atif_rules import faults_of
from selftests.llm.server import Running

pytestmark = pytest.mark.integration

PAYS = "cat /app/answer >/logs/verifier/reward.txt 2>/dev/null || echo 0 >/logs/verifier/reward.txt"
SOLVE = "mkdir -p /app; echo 1 >/app/answer"


def toml(environment="", agent="timeout_sec = 60.0", verifier="", rest=""):
    return f"""
[environment]
network_mode = "no-network"
{environment}
[agent]
{agent}
[verifier]
timeout_sec = 60.0
{verifier}
{rest}
"""


@dataclass
class Made:
    """An attempt that was made."""

    result: StageResult
    evidence: object
    server: Running

    @property
    def facts(self):
        return self.result.facts["trajectory"]

    def trajectory(self, step=""):
        folder = self.evidence / "steps" / step if step else self.evidence
        found = json.loads((folder / "agent" / "trajectory.json").read_bytes())
        assert faults_of(found) == []
        return found

    @property
    def told(self):
        """What the model was told of each of its commands, in their order."""
        steps = self.trajectory()["steps"]
        return [one["content"] for step in steps for one in step.get("observation", {"results": ()})["results"]]


@pytest.fixture
def attempt(real, image, tmp_path, monkeypatch):
    """Let a model of the server try: it gives these commands, one after the other."""
    started = []

    def make(*commands, task=None, model="solves", agent="tools", command_seconds=30.0, max_steps=20, **more):
        monkeypatch.setattr(sessions, "COMMAND_SECONDS", command_seconds)
        policies = tmp_path / "policies.toml"
        text = "".join(
            f"[[tasks]]\ninstruction = {json.dumps(one)}\ncommands = {json.dumps(two)}\n"
            for one, two in (more.pop("steps", None) or [("", list(commands))])
        )
        policies.write_text(text)
        server = Running(policies)
        started.append(server)
        verdict = VerdictSettings(flavour=real.settings.verdict.flavour, agent=agent, max_steps=max_steps)
        run = RunSettings(tmp_path / "out", base_url=server.url)
        machine = Machine(Settings(run, verdict), real._workspace, real.profile, own_extensions())
        machine.__dict__.update(scratch=real.scratch, sandbox=real.sandbox, images=real.images)
        evidence = tmp_path / "evidence"
        asked = Question(task or make_task(tmp_path, test=PAYS), DatasetSettings(), evidence, model=model)
        result, retries = ask(TEACHER, machine, asked)
        assert retries == 0, result
        machine.budget.close()
        return Made(result, evidence, server)

    yield make
    for server in started:
        server.__exit__()


def plain(folder, test=PAYS, files=None, **sections):
    return make_task(folder, test=test, toml=toml(**sections), files=files)


@pytest.mark.parametrize("agent", ["tools", "mini-swe-agent"])
def test_a_time_out_ends_the_command_and_nothing_else(attempt, agent):
    made = attempt(
        "mkdir -p /app; (while :; do echo 1 >/app/alive; sleep 0.1; done) & exit 3",
        "exec 9>/tmp/lock; flock 9; echo begun; sleep 1000 & sleep 1000",
        "rm /app/alive; until [ -s /app/alive ]; do sleep 0.1; done; flock /tmp/lock cp /app/alive /app/answer",
        agent=agent,
        command_seconds=4.0,
    )
    assert made.result.reason == "expected", made.told
    assert "begun" in made.told[1]
    assert "killed after 4 s" in made.told[1]
    facts = made.facts["statistics"]
    assert (facts["timeouts"], facts["nonzero"], made.facts["memory_kills"]) == (1, 1, 0)


def test_a_command_that_kills_what_watches_it(attempt):
    made = attempt(
        "kill -9 $PPID; exec sleep 1000",
        "kill -9 -1; sleep 1000",
        "echo alive",
        "(sleep 0.5; kill -9 -1) & echo left",
        "sleep 1000",
        SOLVE,
        command_seconds=5.0,
    )
    assert made.result.reason == "expected", made.told


def test_a_command_that_ends_at_once_leaves_no_watcher_behind(attempt):
    count = "$(ls -d /proc/[0-9]* | wc -l)"
    few = f"[ {count} -le $(cat /tmp/before) ]"
    made = attempt(
        f"echo {count} >/tmp/before",
        *["true"] * 5,
        # What ends in this moment may be counted, before as well as after.
        f"for i in $(seq 50); do {few} && break; sleep 0.1; done; {few} && echo none left",
        SOLVE,
    )
    assert "none left" in made.told[6], made.told


def test_memory(attempt, tmp_path):
    task = plain(tmp_path, environment="memory_mb = 100")
    made = attempt(SOLVE, "dd bs=300M if=/dev/zero | sleep 20", "test -s /app/answer && echo still there", task=task)
    assert (made.result.reason, made.facts["memory_kills"]) == ("expected", 1), made.told
    assert "memory was used up" in made.told[1]
    assert "still there" in made.told[2]


def test_storage(attempt, tmp_path):
    task = plain(tmp_path, environment="storage_mb = 20")
    made = attempt(SOLVE, "head -c 60000000 /dev/zero >/big", "echo never", task=task)
    assert (made.result.reason, made.facts["finish"], made.facts["truncated"]) == ("unsolved", "storage", True)
    assert made.server.asked()["requests"] == 2


def test_output(attempt):
    made = attempt(
        "head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end",
        "head -c 300000 /dev/urandom",
        "printf '\\033[2J\\000\\377<script>'",
        SOLVE,
    )
    assert made.result.reason == "expected"
    assert made.told[0].startswith("xxx")
    assert made.told[0].endswith("end\n[exit status 0]")
    assert "\x1b[2J\0\ufffd<script>" in made.told[2]
    assert max(map(len, made.told)) < 21_000
    assert (made.evidence / "agent" / "trajectory.json").stat().st_size < 500_000


def test_user_workdir_variables_and_network_are_those_of_the_task(attempt, tmp_path, monkeypatch):
    monkeypatch.setenv("OTVAL_CANARY", "canary")
    task = plain(
        tmp_path,
        environment='workdir = "/srv/w"\n[environment.env]\nA = "x y"\nHTTP_PROXY = "p"',
        agent='timeout_sec = 60.0\nuser = "nobody"',
        test="echo 0 >/logs/verifier/reward.txt",
    )
    made = attempt("id -un; pwd; echo $A; cd /; A=z", "pwd; echo $A; grep -c : /proc/net/dev", "env", task=task)
    assert made.told[0].splitlines()[:3] == ["nobody", "/srv/w", "x y"]
    assert made.told[1].split()[:4] == ["/srv/w", "x", "y", "1"]
    names = {line.partition("=")[0] for line in made.told[2].splitlines()[:-1]}
    assert names <= {"A", "HTTP_PROXY", "PATH", "HOME", "PWD", "SHLVL", "_", "PAGER", "GIT_PAGER", "LANG", "LC_ALL"}


def test_nothing_of_tests_solution_and_host_is_seen(attempt, tmp_path, monkeypatch):
    monkeypatch.setenv("OTVAL_CANARY", "canary-4711")
    monkeypatch.setenv("OPENAI_API_KEY", "canary-4711")
    task = make_task(
        tmp_path, solve="echo canary-4711", test=f"# canary-4711\n{PAYS}", files={"tests/canary-4711": "canary-4711"}
    )
    made = attempt(
        "grep -rsl canary-47''11 / --exclude-dir=proc --exclude-dir=sys; find / -xdev -name 'canary-47''11'; echo done",
        "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -a 'canary-47[1]1'; echo done",
        "ls -A /tests /solution /logs/verifier 2>/dev/null; echo done",
        "cat /proc/self/mountinfo /proc/mounts; cat /proc/*/cmdline | tr '\\0' ' '",
        task=task,
    )
    assert [told.split()[0] for told in made.told[:3]] == ["done"] * 3 or made.told[2].startswith("/"), made.told
    told = json.dumps(made.server.asked())
    assert "canary-4711" not in told, told[max(0, told.index("canary-4711") - 300) :][:600]
    for path in (str(tmp_path), str(task.path), os.getcwd()):
        assert path not in made.told[3]


def test_a_service_that_lives_on_into_the_verifier(attempt, tmp_path):
    task = plain(
        tmp_path,
        environment="memory_mb = 100",
        test="rm -f /tmp/served; until [ -s /tmp/served ]; do sleep 0.1; done; cp /tmp/served /app/answer; " + PAYS,
        rest='[metadata.otval]\nprocess_scope = "trial"',
    )
    serve = "mkdir -p /app; (while :; do echo 1 >/tmp/served; sleep 0.1; done) >/dev/null 2>&1 &"
    made = attempt(serve, "dd bs=300M if=/dev/zero | sleep 20", "ls /tests; echo none", serve, task=task)
    assert (made.result.reason, made.facts["memory_kills"]) == ("expected", 1), (made.result, made.told)
    assert "none" in made.told[2]


def test_a_service_whose_machine_died_is_dead(attempt, tmp_path):
    task = plain(tmp_path, environment="memory_mb = 100")
    serve = "(while :; do echo 1 >/tmp/served; sleep 0.1; done) >/dev/null 2>&1 &"
    made = attempt(serve, "dd bs=300M if=/dev/zero | sleep 20", "rm /tmp/served; sleep 0.5; ls /tmp/served", task=task)
    assert "exit status 2" in made.told[2]


def test_steps(attempt, tmp_path):
    names = ("one", "two")
    files = {f"steps/{name}/instruction.md": f"do {name}\n" for name in names}
    files |= {
        f"steps/{name}/tests/test.sh": f"#!/bin/bash\ncat /app/{name} >/logs/verifier/reward.txt\n" for name in names
    }
    task = make_task(tmp_path, toml=toml(rest='[[steps]]\nname = "one"\n[[steps]]\nname = "two"'), files=files)
    commands = [(f"do {name}", ["mkdir -p /app; echo 1 >/app/" + name]) for name in names]
    made = attempt(task=task, steps=commands)
    assert made.result.reason == "expected", made.result
    assert [step["message"] for step in made.trajectory("two")["steps"]][1] == "do two\n"
    assert made.facts["statistics"]["commands"] == 2


def test_an_image_without_bash(attempt, tmp_path):
    files = {
        "environment/Dockerfile": "FROM debian:bookworm-slim\nRUN rm /bin/bash\n",
        "tests/test.sh": f"#!/bin/sh\n{PAYS}\n",
    }
    made = attempt("echo $0", SOLVE, task=plain(tmp_path, files=files))
    assert made.result.reason == "expected", made.told
    assert "sh" in made.told[0]


@pytest.mark.parametrize("model", ["hangs", "solves"])
def test_time_of_the_task(attempt, tmp_path, model):
    """A model that hangs, or a command: the attempt ends, and is verified."""
    task = plain(tmp_path, agent="timeout_sec = 3.0", test="echo 1 >/logs/verifier/reward.txt")
    made = attempt("sleep 1000", task=task, model=model)
    assert (made.result.reason, made.facts["finish"], made.facts["truncated"]) == ("expected", "time", True)
    assert {"solved-after-truncation", "solved-without-change"} <= set(made.facts["flags"])


def test_a_solution_that_changed_nothing(attempt, tmp_path):
    made = attempt("true", task=plain(tmp_path, test="echo 1 >/logs/verifier/reward.txt"))
    assert (made.facts["changed_files"], made.facts["flags"]) == (0, ["solved-without-change"])


def test_a_reward_path_that_was_touched(attempt):
    made = attempt("mkdir -p /logs/verifier; echo 1 >/logs/verifier/reward.txt", SOLVE)
    assert made.result.reason == "expected"
    assert made.facts["changed_files"] == 1
    assert [flag for flag in made.facts["flags"] if flag.startswith("touched-")]


def test_what_the_task_leaves_under_the_name_of_a_trajectory(attempt):
    made = attempt("echo '{}' >/logs/agent/trajectory.json; echo x >/logs/agent/result.json", SOLVE)
    assert len(made.trajectory()["steps"]) == 5


def test_a_machine_that_the_model_wrecked(attempt):
    made = attempt("rm -rf /usr/bin /bin", "echo still here")
    assert made.result.reason in ("unsolved", "no-reward"), made.result
    assert made.facts["finish"] == "submitted"


def test_commands_that_no_shell_takes(attempt):
    made = attempt("echo '" + "x" * 200_000 + "'", "echo \x07; exit 300", "'", "exit", SOLVE)
    assert made.result.reason == "expected", made.told
    assert "too long" in made.told[0]
