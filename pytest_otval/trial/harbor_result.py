"""A trial's result.json as Harbor 0.26 writes it (its model ``TrialResult``), so that Harbor's tools read it.

It tells what Harbor's rules make of the trial; our verdict is in the ledger. ``scripts/harbor_results.py`` holds it to
Harbor's own models.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from pytest_otval.core import Conclusion
from pytest_otval.task.load import Task
from pytest_otval.trial.outcome import Span, StepOutcome, TrialOutcome
from pytest_otval.trial.reward import harbors_answer

RESULT = "result.json"
ERRORS = {
    "agent-timeout": "AgentTimeoutError",
    "verifier-timeout": "VerifierTimeoutError",
    "healthcheck-failed": "HealthcheckError",
    "memory-limit": "MemoryLimitExceededError",
}
"""Harbor's names of exceptions for reason classes; other classes keep their own name."""

_AGENTS = {"noop": "nop"}
_NAMESPACE = uuid.UUID("7b0e7f0c-2a63-5c0e-9a53-6f74766c2e31")


def write_harbor_result(task: Task, outcome: TrialOutcome, answer: Mapping[str, Any] | None) -> None:
    """Write ``harbor_result`` beside the logs of a trial that began. Raises OSError."""
    if ("", "total") not in outcome.spans:
        return
    text = json.dumps(harbor_result(task, outcome, answer), indent=2, allow_nan=False)
    (outcome.evidence / RESULT).write_text(f"{text}\n", encoding="utf-8")


def harbor_result(task: Task, outcome: TrialOutcome, answer: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the content of result.json.

    ``answer`` is what Harbor's rules give for the trial: ``rewards`` or ``error``, the name of an exception; None where
    the trial was stopped by our or the machine's fault. The task is named as in node ids, by no path of this machine.
    """
    agent = _AGENTS.get(outcome.agent, outcome.agent)
    began, ended = outcome.spans["", "total"]
    key = uuid.uuid5(_NAMESPACE, f"{task.dataset}/{task.name}/{agent}/{outcome.scope}/{began.isoformat()}")
    name = f"{task.name}__{key.hex[:7]}"
    rewards = None if answer is None else answer["rewards"]
    return {
        "schema_version": 1,
        "id": str(key),
        "task_name": task.name,
        "trial_name": name,
        "trial_uri": "",
        "task_id": {"path": _path(task)},
        "source": task.dataset,
        "task_checksum": "",
        "config": _config(task, name, agent),
        "agent_info": {
            "name": agent,
            "version": outcome.version,
            "model_info": {"name": outcome.model, "provider": None} if outcome.model else None,
        },
        "verifier_result": _rewards(rewards),
        **_timing("", outcome, environment_setup="setup"),
        **(_steps(outcome) if task.steps[0].name else _single_step(task, outcome, answer)),
        "agent_setup": None,
        "started_at": began.isoformat(),
        "finished_at": ended.isoformat(),
        "reward_valid": bool(rewards),
    }


def _path(task: Task) -> str:
    return f"datasets/{task.dataset}/tasks/{task.name}"


def _config(task: Task, name: str, agent: str) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "task": {"path": _path(task), "source": task.dataset},
        "trial_name": name,
        "trials_dir": ".",
        "agent": {"name": agent},
        "environment": {"type": "singularity"},
    }


def _single_step(task: Task, outcome: TrialOutcome, answer: Mapping[str, Any] | None) -> dict[str, Any]:
    error = "" if answer is None else answer["error"]
    return {
        "agent_result": _agent_result(outcome.steps[0]) if outcome.steps else None,
        "verifier_environment_mode": task.steps[0].verifier_mode,
        "exception_info": _exception(error, outcome) if error or answer is None else None,
        "step_results": None,
        **_timing("", outcome, agent_execution="agent", verifier="verifier"),
    }


def _steps(outcome: TrialOutcome) -> dict[str, Any]:
    """A multi-step trial: what belongs to a step stands with it, and only there."""
    unassigned = outcome.conclusion is not None and not outcome.steps
    return {
        "agent_result": None,
        "verifier_environment_mode": None,
        "exception_info": _exception("", outcome) if unassigned else None,
        "step_results": [_step(step, outcome) for step in outcome.steps],
        "agent_execution": None,
        "verifier": None,
    }


def _step(step: StepOutcome, outcome: TrialOutcome) -> dict[str, Any]:
    answer = None if step.files is None else harbors_answer(step.files)
    error = "" if answer is None else answer.error
    return {
        "step_name": step.name,
        "agent_result": _agent_result(step),
        "verifier_result": _rewards(None if answer is None else answer.rewards),
        "exception_info": _exception(error, outcome) if error or answer is None else None,
        **_timing(step.name, outcome, agent_execution="agent", verifier="verifier"),
    }


def _agent_result(step: StepOutcome) -> dict[str, Any]:
    """Harbor keeps a place for what agents tell: here the status of solve.sh and the processes it left."""
    told = {"exit_status": step.agent_status, "left_alive": step.left_alive}
    return {**step.used, "metadata": {**told, **step.used.get("metadata", {})}}


def _rewards(rewards: Mapping[str, float] | None) -> dict[str, Any] | None:
    return None if rewards is None else {"rewards": dict(rewards)}


def _exception(error: str, outcome: TrialOutcome) -> dict[str, Any]:
    """Return what stopped the trial; ``error`` is Harbor's name, where its rules give one."""
    stopped = outcome.conclusion or Conclusion("no-reward", error)
    return {
        "exception_type": error or ERRORS.get(stopped.reason, stopped.reason),
        "exception_message": stopped.headline,
        "exception_traceback": stopped.log,
        "occurred_at": outcome.spans["", "total"][1].isoformat(),
    }


def _timing(step: str, outcome: TrialOutcome, **phases: str) -> dict[str, Any]:
    return {name: _span(outcome.spans.get((step, phase))) for name, phase in phases.items()}


def _span(span: Span | None) -> dict[str, str] | None:
    return None if span is None else {"started_at": span[0].isoformat(), "finished_at": span[1].isoformat()}
