"""What a judge claims about a verifier, put to the test: its candidate is run as a trial, and that decides.

A claim that no trial shows decides nothing: there is no candidate, no container runs here, or the trial came to no end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pytest_otval.core import Conclusion, StageResult, Verdict
from pytest_otval.judge.model import Criterion, Judgement, Standing
from pytest_otval.stages.isolation import declared_scope
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import MAX_SCRIPT_BYTES, Question
from pytest_otval.stages.trials import Benches, oracle, trial_stage
from pytest_otval.task.reading import NotReadableError, read_regular
from pytest_otval.task.scale import with_limits_scaled
from pytest_otval.trial.agents.candidate import Candidate
from pytest_otval.trial.watch import WatchingSandbox


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
            if _words(candidate) == self._solution:
                return "advisory", "the candidate is the reference solution"
            return _as_wrong(self._run(criterion, candidate).result)
        except Conclusion as conclusion:
            return "advisory", f"its trial came to nothing: {conclusion}"

    def _run(self, criterion: Criterion, candidate: str) -> _Tried:
        name = f"candidate-{len(self.trials)}-{criterion.id}"
        question = replace(self._question, evidence=self._question.evidence / name)
        agent, scope = Candidate(name, candidate), declared_scope(self._machine, question)
        return self._watched(lambda bench: trial_stage(self._machine, question, agent, scope, bench))

    def _watched(self, trial: Callable[[Benches], StageResult]) -> _Tried:
        watching = WatchingSandbox(self._machine.sandbox)
        result = trial(lambda: replace(self._machine.bench(), sandbox=watching))
        self.trials += result.facts["trials"]
        changes = [one.changes for one in watching.seen if one.phase == "agent"]
        paths = frozenset(change.path for one in changes for change in one.found)
        return _Tried(result, paths, all(one.whole for one in changes))

    def _as_right(self, tried: _Tried) -> tuple[Standing, str]:
        """Nobody can run whether a script is right. So it has to work to its end, on files that the reference solution
        changes, too, and the verifier has to pay that: else its refusal says nothing.
        """
        result = tried.result
        if result.reason == "expected":
            return "disproved", f"the candidate is paid: score {result.facts['score']:g}"
        if result.reason != "wrong-reward" or tried.status != 0:
            return "advisory", f"the candidate came to no score by its own fault: {result.headline or result.reason}"
        reference = self._reference
        if reference.result.verdict is not Verdict.PASS:
            why = reference.result.headline or reference.result.reason
            return "advisory", f"the candidate is not paid, but neither is the reference solution: {why}"
        if tried.whole and reference.whole and not tried.changed & reference.changed:
            return "advisory", "the candidate changes no file that the reference solution changes"
        return "executed", f"the candidate is not paid: {result.headline}"

    @cached_property
    def _reference(self) -> _Tried:
        question = replace(self._question, evidence=self._question.evidence / "candidate-oracle")
        try:
            return self._watched(lambda bench: oracle(self._machine, question, bench))
        except Conclusion as conclusion:
            return _Tried(StageResult(conclusion.reason, str(conclusion)))

    @cached_property
    def _solution(self) -> list[str]:
        """The words of solve.sh; none where it cannot be read."""
        try:
            text = read_regular(self._question.task.steps[0].solution / "solve.sh", MAX_SCRIPT_BYTES)
        except (NotReadableError, FileNotFoundError):
            return []
        return _words(text.decode(errors="replace"))


@dataclass(frozen=True, slots=True)
class _Tried:
    """A trial, and which files its agent changed."""

    result: StageResult
    changed: frozenset[str] = frozenset()
    whole: bool = True
    """Whether these are all."""

    @property
    def status(self) -> int | None:
        """How the agent's script ended."""
        steps = [step for trial in self.result.facts.get("trials", ()) for step in trial["steps"]]
        return steps[-1]["agent_status"] if steps else None


def _words(script: str) -> list[str]:
    """Return what a script says but for its comments and blanks."""
    return [word for line in script.splitlines() if not line.lstrip().startswith("#") for word in line.split()]


def _as_wrong(result: StageResult) -> tuple[Standing, str]:
    if result.reason == "expected":
        return "executed", f"the candidate is paid: score {result.facts['score']:g}"
    if result.verdict is Verdict.FAIL:
        return "disproved", f"the candidate is not paid: {result.headline or result.reason}"
    return "advisory", f"its trial came to nothing: {result.reason}: {result.headline}"
