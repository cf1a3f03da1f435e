"""A pytest plugin that answers in place of the stages, without containers.

What a task gets stands in its file ``wanted/STAGE``: a reason class and a headline, or one of the words below; with
``|`` between them, that of the attempt.
``$STUB_TROUBLE`` is a reason class that keeps this machine from running containers. With ``$STUB_REAL`` a stage of that
name is asked as ever.
"""

import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pytest_otval.core import Conclusion, StageResult

REAL = {}


def answer(stage):
    def ask(machine, question):
        from pytest_otval.stages.question import config_of

        config_of(question.task)
        wanted = question.task.path / "wanted" / stage
        attempts = (wanted.read_text() if wanted.exists() else "expected").split("|")
        reason, _, headline = attempts[question.attempt % len(attempts)].partition(" ")
        if reason == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if reason == "kill-once":
            if not Path(headline).exists():
                Path(headline).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            reason = "expected"
        if reason == "raise":
            raise RuntimeError(headline)
        if reason == "sleep":
            Path(headline).touch()
            time.sleep(60)
        if reason == "hold":
            hold(Path(headline))
            reason = "expected"
        if reason == "lose-interrupt":
            Lost()
            reason = "expected"
        if reason == "eat-once":
            eat_once(Path(headline))
            reason = "expected"
        if reason == "slow":
            time.sleep(float(headline))
            reason = "expected"
        if reason == "kill-job":
            kill_job(Path(headline), f"/{question.task.name}/task.toml::{stage}")
        # The image of a repeated stage is compared with a plan, for which these tasks have no Dockerfile.
        image = None if len(attempts) > 1 else {"key": "k", "content": "c", "base": "bootstrap:<b>"}
        return StageResult(reason, headline, "last line", {"seconds": {"total": 0.5}, "score": 0.25, "image": image})

    return ask


def hold(path):
    """Say where and when it runs, and wait to be let go."""
    with path.with_suffix(".began").open("a") as file:
        file.write(f"{os.environ.get('SLURMD_NODENAME')} {os.environ.get('SLURM_JOB_ID')}\n")
    while not path.with_suffix(".go").exists():
        time.sleep(0.1)


class Lost:
    """Python drops what is raised here."""

    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)


def eat_once(path):
    """Take all memory there is, the first time."""
    if path.with_suffix(".began").exists():
        return
    path.with_suffix(".began").touch()
    eaten = []
    while sum(map(len, eaten)) < 6 << 30:
        eaten.append(b"x" * (64 << 20))
        time.sleep(0.1)
    time.sleep(60)


def kill_job(path, item):
    """Kill all of the Slurm job in which it runs, its own process last."""
    with path.with_suffix(".began").open("a") as file:
        file.write(f"{os.environ['SLURM_JOB_ID']}\n")
    # What this process has begun is told by another one.
    name = "{SLURM_ARRAY_JOB_ID}_{SLURM_ARRAY_TASK_ID}".format_map(os.environ)
    life = f"ws/runs/*/ledger/shard-*.{name}.{os.environ.get('SLURM_RESTART_COUNT', 0)}.jsonl"
    while not any(item in ledger.read_text() for ledger in path.parent.glob(life)):
        time.sleep(0.1)
    mark = f"SLURM_JOB_ID={os.environ['SLURM_JOB_ID']}".encode()
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    for pid in sorted(pids, key=lambda pid: pid == os.getpid()):
        with suppress(OSError):
            if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGKILL)


static, build, oracle, noop, teacher = map(answer, ("static", "build", "oracle", "noop", "teacher"))
judge_task, judge_trace = map(answer, ("judge_task", "judge_trace"))


def probe(workspace, profile):
    if trouble := os.environ.get("STUB_TROUBLE"):
        raise Conclusion(trouble, "no containers here")
    return "userns", []


def _own_stages():
    """Return the names that ``own_stages`` sees, whatever module of that name was imported since."""
    # Not imported above: a plugin of ``-p`` loads before our guard is there.
    from pytest_otval.glue import options

    return options.own_stages.__globals__


def pytest_configure():
    from pytest_otval.stages import machine

    names = _own_stages()
    REAL.update({name: names[name] for name in ("STAGES", "TEACHER", "JUDGES")}, probe=machine.probe_flavour)
    names["STAGES"] = tuple(map(_stub, names["STAGES"]))
    names["TEACHER"], names["JUDGES"] = _stub(names["TEACHER"]), tuple(map(_stub, names["JUDGES"]))
    machine.probe_flavour = probe


def _stub(stage):
    if stage.name == os.environ.get("STUB_REAL"):
        return stage
    return replace(stage, answer=f"otval_stub:{stage.name}", recall="")


def pytest_unconfigure():
    from pytest_otval.stages import machine

    machine.probe_flavour = REAL.pop("probe")
    _own_stages().update(REAL)
