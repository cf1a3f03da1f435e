"""teacher: can a model solve it? An item is one attempt; what is known of it goes into its line, and adds up later.

An attempt that was scored is an answer, solved or not; so is one that left no machine to verify anything on. Where the
verifier gave no score for another reason that is the task's fault, as in any other trial, and no failure of the model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from itertools import chain
from typing import Any

from pytest_otval.core import Conclusion, OtvalUsageError, StageResult
from pytest_otval.llm.agents.base import Attempting
from pytest_otval.llm.attempts import flags_of, tokens_of
from pytest_otval.llm.chat import BudgetSpentError
from pytest_otval.llm.session import TRUNCATED, Record
from pytest_otval.llm.trajectory_statistics import statistics_of
from pytest_otval.stages.isolation import declared_scope
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import Question
from pytest_otval.stages.trials import trial_stage
from pytest_otval.task.load import Task
from pytest_otval.trial.layer import Bench
from pytest_otval.trial.watch import Seen, WatchingSandbox


def answer(machine: Machine, question: Question) -> StageResult:
    """Let a model try. Raises Conclusion."""
    try:
        machine.budget.require()
        chat = machine.chat(question.model, question.attempt)
        agent = Attempting(machine.model_agent, chat, machine.settings.verdict.max_steps)
    except BudgetSpentError as error:
        raise Conclusion("budget-spent", str(error)) from None
    except OtvalUsageError as error:
        raise Conclusion("endpoint-failed", str(error)) from None
    watching = WatchingSandbox(machine.sandbox)

    def bench() -> Bench:
        return replace(machine.bench(), sandbox=watching, share=machine.profile.budget.attempts_per_core)

    result = trial_stage(machine, question, agent, declared_scope(machine, question), bench)
    return _told(result, question.task, agent.records, watching.seen)


def _told(result: StageResult, task: Task, records: list[Record], seen: list[Seen]) -> StageResult:
    """Return the answer of an attempt, with what it took and did."""
    stopped = next((record.finish for record in records if record.finish in TRUNCATED), "")
    reason = "unsolved" if result.reason == "wrong-reward" or _wrecked(result, stopped) else result.reason
    solved = reason == "expected"
    facts = {**_facts(records, seen, solved, stopped), "repository": task.repository}
    headline = result.headline
    score = result.facts.get("score")
    if reason in ("expected", "unsolved") and score is not None:
        why = f", {stopped} over" if stopped else ""
        headline = f"score {score:g} after {facts['statistics']['steps']} steps{why}"
    trials = [{**trial, "class": reason, "headline": headline} for trial in result.facts.get("trials", ())]
    return StageResult(reason, headline, result.log, {**result.facts, "trials": trials, "trajectory": facts})


def _wrecked(result: StageResult, stopped: str) -> bool:
    """Whether there is no score since the model left a machine on which nothing can be verified."""
    return result.reason == "tampered" or (result.reason == "storage-limit" and stopped == "storage")


def _facts(records: list[Record], seen: Iterable[Seen], solved: bool, stopped: str) -> dict[str, Any]:
    steps = list(chain.from_iterable(record.steps for record in records))
    statistics = statistics_of(steps)
    changes = [one.changes for one in seen if one.phase == "agent"]
    paths = {change.path for one in changes for change in one.found}
    changed = len(paths) if all(one.whole for one in changes) else None
    return {
        "finish": records[-1].finish if records else "",
        "truncated": bool(stopped),
        **tokens_of(chain.from_iterable(record.usages for record in records)),
        "retries": sum(record.retries for record in records),
        "memory_kills": sum(record.memory_kills for record in records),
        "changed_files": changed,
        "flags": list(flags_of(statistics, solved, bool(stopped), changed)),
        "statistics": asdict(statistics),
    }
