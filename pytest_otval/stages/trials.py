"""oracle and noop: does the reference solution score at the top, and doing nothing at the bottom?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_otval.core import REASONS, Conclusion, Isolation, Rules, StageResult, Verdict
from pytest_otval.images.model import Image
from pytest_otval.stages.isolation import AUTO, at_strongest, declared_scope, isolation_of
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import (
    BUILD_LOG,
    Question,
    agent_image,
    config_of,
    image_facts,
    require_owners,
    require_runnable,
    verifier_image,
)
from pytest_otval.task.dataset import DatasetSettings
from pytest_otval.trial.agents.base import Agent
from pytest_otval.trial.conditions import Conditions
from pytest_otval.trial.harbor_result import ERRORS, write_harbor_result
from pytest_otval.trial.layer import Bench, tail
from pytest_otval.trial.outcome import Scope, TrialOutcome, step_folder
from pytest_otval.trial.reward import (
    HarborAnswer,
    RewardFault,
    Rewards,
    Side,
    combine_steps,
    harbors_answer,
    score,
)
from pytest_otval.trial.trial import run_trial

Benches = Callable[[], Bench]
"""Gives what a trial needs of the machine, once for each."""


def oracle(machine: Machine, question: Question, bench: Benches | None = None) -> StageResult:
    """Run the reference solution, at isolation ``auto`` at the strongest level at which it and doing nothing pass.

    ``bench`` gives another than the machine's.
    """
    if machine.settings.verdict.isolation != AUTO or question.isolation is not None:
        return _oracle(machine, question, bench)

    def both(machine: Machine, question: Question) -> StageResult:
        result = _oracle(machine, question, bench)
        if result.verdict is not Verdict.PASS:
            return result
        idle = _noop(machine, replace(question, evidence=question.evidence / "noop"), bench)
        if idle.verdict is not Verdict.PASS:
            return replace(idle, headline=f"noop: {idle.headline}")
        trials = [*result.facts["trials"], *idle.facts["trials"]]
        return replace(result, facts={**result.facts, "trials": trials})

    return at_strongest(machine, question, both)


def noop(machine: Machine, question: Question, bench: Benches | None = None) -> StageResult:
    """Do nothing; a score of at most ``noop_max`` is expected. See ``oracle``."""
    if machine.settings.verdict.isolation != AUTO or question.isolation is not None:
        return _noop(machine, question, bench)
    return at_strongest(machine, question, lambda machine, question: _noop(machine, question, bench))


def _oracle(machine: Machine, question: Question, bench: Benches | None) -> StageResult:
    """Run the reference solution; a score of at least ``oracle_min`` is expected.

    Where processes of the solution were alive at the end of their phase and the score was wrong, the task may mean a
    service that has to go on: the trial is repeated in scope ``trial``, and the scope that passed is recorded.
    """
    agent, scope = machine.agent("oracle"), declared_scope(machine, question)
    result = trial_stage(machine, question, agent, scope, bench)
    services = any(step["left_alive"] for trial in result.facts.get("trials", ()) for step in trial["steps"])
    if result.verdict is Verdict.FAIL and scope == "phase" and services:
        again = trial_stage(machine, question, agent, "trial", bench)
        if again.verdict is Verdict.PASS:
            trials = [*result.facts["trials"], *again.facts["trials"]]
            return StageResult(again.reason, again.headline, again.log, {**again.facts, "trials": trials})
    return result


def _noop(machine: Machine, question: Question, bench: Benches | None) -> StageResult:
    return trial_stage(machine, question, machine.agent("noop"), declared_scope(machine, question), bench)


def trial_stage(
    machine: Machine, question: Question, agent: Agent, scope: Scope, bench: Benches | None = None
) -> StageResult:
    """Run one trial and judge it: of an agent at side ``low`` the highest score is expected, of others the lowest.

    ``bench`` gives another than the machine's, once for each trial.

    Raises Conclusion where there is nothing to judge.
    """
    task = question.task
    require_runnable(task)
    for step in task.steps:
        agent.check(task, step)
    image = _images(machine, question)
    require_owners(task, image.config.user, machine.sandbox)
    evidence = evidence_of(machine, question, scope)
    verdict = machine.settings.verdict
    conditions = Conditions.of(verdict, question.attempt)
    isolation = isolation_of(machine, question)
    level: Isolation = "fresh" if isolation == "separate" else isolation
    settings = question.settings
    outcome = run_trial((bench or machine.bench)(), task, image, agent, scope, settings, evidence, conditions, level)
    answer = judge(outcome, question.settings, verdict.rules, _strategy(question))
    headline = "; ".join(filter(None, (answer.headline, _order_note(outcome))))
    write_harbor_result(task, outcome, answer.harbor)
    reached = "none" if scope == "trial" else isolation
    trial = {
        "agent": agent.name,
        "scope": scope,
        "isolation": reached,
        "class": answer.reason,
        "headline": headline,
        "score": answer.score,
        "steps": [step.as_dict() for step in outcome.steps],
        "seconds": _rounded(outcome.seconds),
    }
    facts = {
        "image": image_facts(image),
        "runtimes": _runtimes(outcome),
        "scope": scope,
        "isolation": reached,
        "seconds": _rounded(outcome.seconds),
        "trials": [trial],
        "rewards": answer.rewards,
        "score": answer.score,
        "harbor": answer.harbor,
        "stricter": answer.stricter,
        "reproduce": outcome.reproduce,
    }
    return StageResult(answer.reason, headline, answer.log, facts)


def evidence_of(machine: Machine, question: Question, scope: Scope) -> Path:
    """Return where a trial leaves its logs."""
    return question.evidence if scope == declared_scope(machine, question) else question.evidence / "scope-trial"


def _runtimes(outcome: TrialOutcome) -> list[str]:
    """Return what the phases had, each once, as the ledger names it."""
    return list(dict.fromkeys(filter(None, (outcome.runtime, *(step.runtime for step in outcome.steps)))))


def _order_note(outcome: TrialOutcome) -> str:
    """Say by which seed tests were put in order, or that none could be."""
    orders = [step.test_order for step in outcome.steps if step.test_order is not None]
    if not orders:
        return ""
    if any(order["tests"] for order in orders):
        return f"tests in the order of seed {orders[0]['seed']}"
    return "no tests were put in another order: no pytest that takes plugins ran"


def _images(machine: Machine, question: Question) -> Image:
    """Make the task's images; one that cannot be built by the task's fault blocks the stage."""
    log = question.evidence / BUILD_LOG
    try:
        image = machine.images.ensure(agent_image(question.task), log)
        for step in question.task.steps:
            request = verifier_image(step)
            if request is not None:
                machine.images.ensure(request, log)
    except Conclusion as conclusion:
        if REASONS[conclusion.reason].verdict is Verdict.FAIL and conclusion.reason != "bad-task":
            raise Conclusion("image-failed", str(conclusion), conclusion.log) from None
        raise
    return image


def _strategy(question: Question) -> str:
    return str(config_of(question.task).multi_step_reward_strategy or "mean")


def _rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    return {phase: round(value, 4) for phase, value in seconds.items()}


@dataclass(frozen=True, slots=True)
class Answer:
    """A trial's outcome, judged."""

    reason: str
    headline: str = ""
    log: str = ""
    rewards: dict[str, float] | None = None
    score: float | None = None
    harbor: dict[str, Any] | None = None
    stricter: str = ""


def judge(outcome: TrialOutcome, settings: DatasetSettings, rules: Rules, strategy: str) -> Answer:
    """Return the verdict of a trial by ``rules``, with Harbor's answer beside it."""
    side = outcome.side
    ours = _ours(outcome, settings, rules, strategy, side)
    if REASONS[ours.reason].verdict not in (Verdict.PASS, Verdict.FAIL):
        return ours
    harbor = _harbors(outcome, settings, strategy, side)
    passes = bool(harbor["pass"])
    stricter = ours.reason if passes and ours.reason != "expected" else ""
    reason, headline = ours.reason, ours.headline
    if rules == "harbor" and passes:
        reason, headline = "expected", ""
    elif rules == "harbor" and reason == "expected":
        reason, headline = "wrong-reward", f"Harbor's rules give {harbor['rewards'] or harbor['error']}"
    return Answer(reason, headline, ours.log, ours.rewards, ours.score, harbor, stricter)


def _ours(outcome: TrialOutcome, settings: DatasetSettings, rules: Rules, strategy: str, side: Side) -> Answer:
    if outcome.conclusion is not None:
        stopped = outcome.conclusion
        log = stopped.log or _verifier_tail(outcome)
        return Answer(stopped.reason, stopped.headline, log)
    rewards = combine_steps([step.rewards or {} for step in outcome.steps], strategy)
    value = score(rewards, settings, side)
    if isinstance(value, RewardFault):
        return Answer(value.reason, value.headline, _verifier_tail(outcome), dict(rewards))
    known = Answer("expected", "", "", dict(rewards), value)
    if not _expected(value, settings, side):
        wanted = f"at least {settings.oracle_min:g}" if side == "low" else f"at most {settings.noop_max:g}"
        headline = f"{outcome.agent} scored {value:g}, {wanted} was expected"
        return Answer("wrong-reward", headline, _verifier_tail(outcome), known.rewards, value)
    statuses = [step.agent_status for step in outcome.steps]
    if rules == "strict" and outcome.agent == "oracle" and any(status != 0 for status in statuses):
        log = tail(outcome.evidence / "agent" / f"{outcome.agent}.txt")
        return Answer("solution-failed", f"solve.sh ended with {statuses}", log, known.rewards, value)
    return known


def _expected(value: float, settings: DatasetSettings, side: Side) -> bool:
    return value >= settings.oracle_min if side == "low" else value <= settings.noop_max


def _verifier_tail(outcome: TrialOutcome) -> str:
    name = outcome.steps[-1].name if outcome.steps else ""
    return tail(step_folder(outcome.evidence, name) / "verifier" / "test-stdout.txt")


def _harbors(outcome: TrialOutcome, settings: DatasetSettings, strategy: str, side: Side) -> dict[str, Any]:
    answers = [harbors_answer(step.files) for step in outcome.steps if step.files is not None]
    stopped = outcome.conclusion
    unread = stopped is not None and any(step.files is None for step in outcome.steps)
    if not answers or unread:
        reason = stopped.reason if stopped is not None else "no-reward"
        answers = [HarborAnswer(None, ERRORS.get(reason, reason))]
    error = next((answer.error for answer in answers if answer.error), "")
    if error:
        return {"rewards": None, "error": error, "pass": False}
    steps: list[Rewards] = [answer.rewards or {} for answer in answers]
    rewards = combine_steps(steps, strategy)
    anything = DatasetSettings(
        reward_key=settings.reward_key,
        oracle_min=settings.oracle_min,
        noop_max=settings.noop_max,
        reward_range=(float("-inf"), float("inf")),
    )
    value = score(rewards, anything, side)
    passes = not isinstance(value, RewardFault) and _expected(value, settings, side)
    return {"rewards": dict(rewards), "error": "", "pass": passes}
