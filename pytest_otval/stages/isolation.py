"""The isolation level of a question, and the search for the strongest one at which a task works."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

from pytest_otval.core import LEVELS, Conclusion, Isolation, StageResult, Verdict
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import Question, config_of
from pytest_otval.trial.outcome import Scope

AUTO: Literal["auto"] = "auto"
_USUAL: Isolation = "fresh"


def declared_scope(machine: Machine, question: Question) -> Scope:
    """Return how long the agent's processes live, as the task declares it or isolation ``none`` brings along.

    Raises Conclusion ``bad-task``.
    """
    return "trial" if _outlives(question) or isolation_of(machine, question) == "none" else "phase"


def _outlives(question: Question) -> bool:
    """Whether the task declares that its services live on into the verifier's phase."""
    scopes = get_args(Scope)
    declared = _metadata(question).get("process_scope", "phase")
    if declared not in scopes:
        raise Conclusion("bad-task", f"[metadata.otval] process_scope = {declared!r}: write {' or '.join(scopes)}")
    return bool(declared == "trial")


def isolation_of(machine: Machine, question: Question) -> Isolation | Literal["separate"]:
    """Return how far the verifier is kept from what the agent left: as the question itself or the run says, else the
    task, else its dataset.

    Of a task whose verifiers are all separate it is ``separate``. Raises Conclusion ``bad-task``.
    """
    if _is_separate(question):
        return "separate"
    settings = question.settings
    usual = settings.levels.get(question.task.name, settings.isolation)
    declared = _metadata(question).get("isolation", usual)
    if declared not in LEVELS:
        raise Conclusion("bad-task", f"[metadata.otval] isolation = {declared!r}: write {' or '.join(LEVELS)}")
    of_run = machine.settings.verdict.isolation
    chosen: Isolation = question.isolation or (of_run if of_run and of_run != AUTO else declared)
    return chosen


def _is_separate(question: Question) -> bool:
    return all(step.verifier_mode == "separate" for step in question.task.steps)


def _metadata(question: Question) -> Mapping[str, Any]:
    ours = config_of(question.task).metadata.get("otval", {})
    return ours if isinstance(ours, dict) else {}


def at_strongest(machine: Machine, question: Question, ask: Callable[[Machine, Question], StageResult]) -> StageResult:
    """Ask at one level after the other, the strongest first, until one passes.

    The fact ``levels`` has the reason class at each that was tried. Where none passes, the answer is that of the usual
    level. Where a level gives no answer about the task, neither does this.
    """
    tried: dict[str, StageResult] = {}
    levels = _levels(question)
    for level in levels:
        at_level = replace(question, isolation=level, evidence=question.evidence / level)
        tried[level] = result = ask(machine, at_level)
        if result.verdict not in (Verdict.PASS, Verdict.FAIL):
            return result
        if result.verdict is Verdict.PASS and (_stood(result, level) or len(levels) == 1):
            break
    else:
        passed = [one for one in tried.values() if one.verdict is Verdict.PASS]
        result = passed[0] if passed else tried[_USUAL]
    facts = {
        **result.facts,
        "levels": {level: one.reason if _stood(one, level) else "other-scope" for level, one in tried.items()},
        "trials": [trial for one in tried.values() for trial in one.facts.get("trials", ())],
    }
    return replace(result, facts=facts)


def at_found(question: Question, solved: StageResult | None) -> Question:
    """Return a question as it is asked at the level that ``at_strongest`` found."""
    tried = solved.facts.get("levels", {}) if solved is not None else {}
    found = next((level for level in LEVELS if tried.get(level) == "expected"), _USUAL)
    return replace(question, isolation=found)


def _levels(question: Question) -> tuple[Isolation, ...]:
    """Return what is worth trying: where the verifier has a container for itself, or none, there is one way only."""
    if _is_separate(question) or _outlives(question):
        return (_USUAL,)
    return LEVELS[::-1]


def _stood(result: StageResult, level: str) -> bool:
    """Whether an answer is one at a level; a solution whose services have to live on gets one container for both."""
    return result.facts.get("isolation", level) in (level, "separate")
