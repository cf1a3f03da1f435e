"""Trials of every kind, told in Harbor's shape; ``python -m selftests.trial.harbor_cases`` prints them.

    python -m selftests.trial.harbor_cases | HARBOR/bin/python scripts/harbor_results.py \
        > selftests/data/harbor/results.json

HARBOR is a virtual environment with harbor==0.26.0, see ``scripts/harbor_golden.py``.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pytest_otval.core import Conclusion
from pytest_otval.llm.agents.base import used_by
from pytest_otval.llm.agents.tools import TOOL
from pytest_otval.llm.atif import Trajectory
from pytest_otval.llm.chat import Message, Reply, Usage
from pytest_otval.llm.session import Record
from pytest_otval.report.harbor import job_config, job_result
from pytest_otval.stages.trials import judge
from pytest_otval.task.dataset import DatasetSettings
from pytest_otval.task.load import Task
from pytest_otval.trial.harbor_result import harbor_result
from pytest_otval.trial.outcome import Scope, StepOutcome, TrialOutcome
from pytest_otval.trial.reward import RewardFault, RewardFiles
from selftests.fakes import TOML, make_task
from selftests.llm.scripted import call, said

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
STEPS = TOML + '[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n'


def step(text: float | RewardFault | None = 1.0, name: str = "", **values: Any) -> StepOutcome:
    """A step whose verifier left reward.txt, or nothing."""
    rewards = {"reward": text} if isinstance(text, float) else text
    status = {"agent_status": 0, "verifier_status": 0, **values}
    return StepOutcome(name, RewardFiles(None, rewards), rewards if isinstance(text, float) else None, **status)


def outcome(*steps: StepOutcome, agent: str = "oracle", stopped: str = "", scope: Scope = "phase") -> TrialOutcome:
    """A trial of a minute whose phases took a second each."""
    conclusion = Conclusion(stopped, "why it ended", "last\nlines") if stopped else None
    made = TrialOutcome(agent, scope, Path(), list(steps), conclusion=conclusion, version="1.0.0")
    phases = [("", "setup"), *((one.name, phase) for one in steps for phase in ("agent", "hand_over", "verifier"))]
    for number, phase in enumerate(phases):
        made.spans[phase] = (BEGAN + timedelta(seconds=number), BEGAN + timedelta(seconds=number + 1))
    made.spans["", "total"] = (BEGAN, BEGAN + timedelta(minutes=1, milliseconds=1))
    return made


def attempt(*steps: StepOutcome, stopped: str = "") -> TrialOutcome:
    """A trial of a model."""
    made = outcome(*steps, agent="tools", stopped=stopped)
    made.version, made.model, made.side = "1", "org/model-8b", "low"
    return made


def used(usd: float | None = None, finish: str = "submitted") -> dict[str, Any]:
    """What a step of it used."""
    return used_by(Record(usages=[Usage(1000, 50, 900, 10, usd)] * 2, finish=finish), "org/model-8b")


def trajectories(folder: Path) -> dict[str, Any]:
    """Return trajectories, all of one moment."""
    conversations: dict[str, list[Reply]] = {
        "tools": [said("look", call({"command": "ls"}), reasoning_content="deep"), said("done")],
        "broken": [said("", call("{"), call({"n": [1, None]}, "odd", "c2")), said([{"type": "text", "text": "part"}])],
        "hostile": [said("\0\x1b[2J\ud800", call({"\udc00": "\udc00"}, "\ud800", "\ud800"), finish="\ud800")],
    }
    found = {}
    for name, replies in conversations.items():
        path = folder / f"{name}.json"
        trajectory = Trajectory(path, "tools", "1", "org/model-8b", "session")
        trajectory.tools([TOOL])
        told: list[Message] = [{"role": "system", "content": "s"}, {"role": "user", "content": "do it \ud800"}]
        for reply in replies:
            trajectory.heard(told)
            trajectory.answered(reply)
            trajectory.observed("out\0", "c1", {"status": 0})
            told = [*told, reply.message, {"role": "tool", "tool_call_id": "c1", "content": "out"}]
        trajectory.write({"finish": "submitted"})
        found[name] = json.loads(path.read_bytes())
        for one in found[name]["steps"]:
            one["timestamp"] = BEGAN.isoformat()
    return found


def tasks(folder: Path) -> dict[str, Task]:
    """Return tasks of three kinds, made in ``folder``."""
    separate = TOML + 'environment_mode = "separate"\n'
    return {
        name: make_task(folder / name, toml=toml)
        for name, toml in {"single": TOML, "steps": STEPS, "separate": separate}.items()
    }


def trials() -> dict[str, tuple[str, TrialOutcome]]:
    """Return kind of task and outcome by name of the case."""
    unread = StepOutcome("")
    several = StepOutcome("", RewardFiles({"a": 1.0, "b": 0.25}, None), {"a": 1.0, "b": 0.25}, 0, 0, 3)
    return {
        "oracle": ("single", outcome(step())),
        "noop": ("single", outcome(step(0.0, agent_status=None), agent="noop")),
        "several-rewards": ("single", outcome(several)),
        "separate": ("separate", outcome(step(0.5, agent_status=1))),
        "scope-trial": ("single", outcome(step(), scope="trial")),
        "agent-timeout": ("single", outcome(unread, stopped="agent-timeout")),
        "verifier-timeout": ("single", outcome(unread, stopped="verifier-timeout")),
        "memory-limit": ("single", outcome(unread, stopped="memory-limit")),
        "no-reward": ("single", outcome(step(None), stopped="no-reward")),
        "unreadable": (
            "single",
            outcome(step(RewardFault("reward-unreadable", "no number")), stopped="reward-unreadable"),
        ),
        "stricter": ("single", outcome(step(2.0))),
        "setup-failed": ("single", outcome(stopped="setup-failed")),
        "no-start": ("single", outcome(unread, stopped="no-start")),
        "steps": ("steps", outcome(step(1.0, "one"), step(0.5, "two"))),
        "steps-stopped": ("steps", outcome(step(1.0, "one"), StepOutcome("two"), stopped="healthcheck-failed")),
        "steps-no-reward": ("steps", outcome(step(1.0, "one"), step(None, "two"), stopped="no-reward")),
        "steps-setup-failed": ("steps", outcome(stopped="setup-failed")),
        "steps-killed": ("steps", outcome(StepOutcome("one"), stopped="killed")),
        "solved": ("single", attempt(step(agent_status=None, used=used()))),
        "unsolved": ("single", attempt(step(0.0, agent_status=None, used=used(0.125, "steps")))),
        "endpoint-failed": ("single", attempt(StepOutcome("", used=used(finish="")), stopped="endpoint-failed")),
        "steps-solved": ("steps", attempt(step(name="one", used=used(0.5)), step(name="two", used=used(0.5)))),
    }


def cases() -> dict[str, dict[str, Any]]:
    """Return model and content of what we write, by name."""
    with TemporaryDirectory() as folder:
        made = tasks(Path(folder))
        results = {
            name: harbor_result(made[kind], trial, judge(trial, DatasetSettings(), "default", "mean").harbor)
            for name, (kind, trial) in trials().items()
        }
        told = trajectories(Path(folder))
    found = {name: {"model": "TrialResult", "ours": result} for name, result in results.items()}
    found |= {f"trajectory-{name}": {"model": "Trajectory", "ours": one} for name, one in told.items()}
    every = list(results.values())
    found["job"] = {"model": "JobResult", "ours": job_result(every, "job")}
    found["job-of-one"] = {"model": "JobResult", "ours": job_result(every[:1], "job")}
    found["job-of-none"] = {"model": "JobResult", "ours": job_result([], "job")}
    found["job-config"] = {"model": "JobConfig", "ours": job_config(every, Path("/jobs/job"))}
    return found


if __name__ == "__main__":
    json.dump(cases(), sys.stdout, indent=1, sort_keys=True)
