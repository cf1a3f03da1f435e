"""What a judge claims about a verifier, put to the test: its candidate is run as a trial, and that decides.

A claim that no trial shows decides nothing: there is no candidate, no container runs here, or the trial came to no end.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

from pytest_otval.core import Conclusion, StageResult, Verdict
from pytest_otval.judge.model import Criterion, Judgement, Standing
from pytest_otval.stages.isolation import declared_scope
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import Question
from pytest_otval.stages.trials import oracle, trial_stage
from pytest_otval.task.scale import with_limits_scaled
from pytest_otval.trial.agents.candidate import Candidate


class Executions:
    """The trials of what is claimed about one task."""

    def __init__(self, machine: Machine, question: Question) -> None:
        self._machine = machine
        task = with_limits_scaled(question.task, machine.settings.verdict.timeout_multiplier)
        self._question = replace(question, task=task)
        self.trials: list[dict[str, Any]] = []
        """As lines of the ledger know them."""

    def decide(self, criterion: Criterion, judgement: Judgement) -> Judgement:
        """Return a judgement with what a trial shows of it, where its criterion asks for one and it was not refuted."""
        if not criterion.execution or judgement.outcome != "fail" or judgement.standing != "stands":
            return judgement
        standing, why = self._tried(criterion, judgement.opinion.candidate)
        return replace(judgement, standing=standing, why=why)

    def _tried(self, criterion: Criterion, candidate: str) -> tuple[Standing, str]:
        if not candidate.strip():
            return "advisory", "there is no candidate to be run"
        if len(self._question.task.steps) != 1:
            return "advisory", "a candidate is one script, and the task has several steps"
        if not self._machine.settings.verdict.flavour:
            return "advisory", "no container runs on this machine"
        try:
            if criterion.execution == "right-solution":
                return self._as_right(self._run(criterion, candidate))
            return _as_wrong(self._run(criterion, candidate))
        except Conclusion as conclusion:
            return "advisory", f"its trial came to nothing: {conclusion}"

    def _run(self, criterion: Criterion, candidate: str) -> StageResult:
        name = f"candidate-{len(self.trials)}-{criterion.id}"
        question = replace(self._question, evidence=self._question.evidence / name)
        scope = declared_scope(self._machine, question)
        result = trial_stage(self._machine, question, Candidate(name, candidate), scope)
        self.trials += result.facts["trials"]
        return result

    def _as_right(self, result: StageResult) -> tuple[Standing, str]:
        """A verifier that rejects what claims to be right is at fault only if it takes the reference solution."""
        if result.reason == "expected":
            return "disproved", f"the candidate is paid: score {result.facts['score']:g}"
        status = result.facts["trials"][0]["steps"][-1]["agent_status"] if result.facts["trials"][0]["steps"] else None
        if result.reason != "wrong-reward" or status != 0:
            return "advisory", f"the candidate came to no score by its own fault: {result.headline or result.reason}"
        if self._reference:
            return "advisory", f"the candidate is not paid, but neither is the reference solution: {self._reference}"
        return "executed", f"the candidate is not paid: {result.headline}"

    @cached_property
    def _reference(self) -> str:
        """Why the reference solution is not paid; empty where it is."""
        evidence = self._question.evidence / "candidate-oracle"
        try:
            result = oracle(self._machine, replace(self._question, evidence=evidence))
        except Conclusion as conclusion:
            return str(conclusion)
        self.trials += result.facts["trials"]
        return "" if result.verdict is Verdict.PASS else result.headline or result.reason


def _as_wrong(result: StageResult) -> tuple[Standing, str]:
    if result.reason == "expected":
        return "executed", f"the candidate is paid: score {result.facts['score']:g}"
    if result.verdict is Verdict.FAIL:
        return "disproved", f"the candidate is not paid: {result.headline or result.reason}"
    return "advisory", f"its trial came to nothing: {result.reason}: {result.headline}"
