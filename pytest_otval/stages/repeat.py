"""Asking a stage more than once: attempts of one item, and what they add up to.

An attempt is the whole stage, with its own retries. Its number tells which it is in every run: ``--otval-repeat N``
wants the attempts 0 to N-1, and makes those that no earlier run into the same run folder made.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_otval.core import Conclusion, StageResult, Verdict
from pytest_otval.stages.earlier import Earlier
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import Question, agent_image
from pytest_otval.stages.registry import ask
from pytest_otval.stages.spec import Stage

COVERAGE = 0.95
"""Of the interval of the rate."""

MOST_NUMBERS = 5
"""How many attempts a headline names of each class."""

_KEPT = ("score", "image", "scope", "isolation", "reproduce", "evidence")
"""What a trial line knows of an attempt's part of the result line."""

Keep = Callable[[StageResult, Path], str]
"""Takes an attempt that has ended, with its trials, and its folder of evidence; returns where that is kept."""


def keep_nothing(result: StageResult, evidence: Path) -> str:
    """Leave an attempt to the item's end."""
    return ""


def ask_repeated(
    stage: Stage, machine: Machine, question: Question, count: int, earlier: Earlier, keep: Keep = keep_nothing
) -> tuple[StageResult, int]:
    """Ask a stage until ``count`` attempts are known; return what they add up to and the number of retries.

    Earlier attempts count if they ran over the same image. An answer that is none about an attempt ends the item at
    once and is its answer: an error, blocked, n/a, or a task that cannot be read. Attempts before it are kept: each
    goes to ``keep`` as it ends, so that a process that is killed loses only what it was at.
    """
    try:
        known = {number: _earlier_result(line) for number, line in _same_image(machine, question, earlier).items()}
    except Conclusion as conclusion:
        return StageResult(conclusion.reason, conclusion.headline, conclusion.log), 0
    made = _Made(earlier.next_number)
    for number in range(count):
        if number in known:
            continue
        evidence = question.evidence / f"attempt-{number}"
        result, retries = ask(stage, machine, replace(question, attempt=number, evidence=evidence))
        trials = made.add(stage, number, result, retries)
        facts = {**made.common, **result.facts}
        place = keep(replace(result, facts={**facts, "trials": trials}), evidence)
        result = replace(result, facts={**facts, "evidence": place})
        if not _is_of_an_attempt(result):
            return replace(result, facts={**result.facts, **made.facts}), made.retries
        known[number] = result
    return _together(known, made), made.retries


def _same_image(machine: Machine, question: Question, earlier: Earlier) -> Mapping[int, Mapping[str, Any]]:
    """Raises Conclusion where the image of today cannot be told."""
    if not any(line["image"] for line in earlier.attempts.values()):
        return earlier.attempts
    key = machine.images.plan(agent_image(question.task)).key
    return {number: line for number, line in earlier.attempts.items() if (line["image"] or {}).get("key") == key}


def _is_of_an_attempt(result: StageResult) -> bool:
    return result.verdict in (Verdict.PASS, Verdict.FAIL) and result.reason != "bad-task"


def _earlier_result(line: Mapping[str, Any]) -> StageResult:
    return StageResult(line["class"], line["headline"], facts={name: line[name] for name in _KEPT})


class _Made:
    """The attempts of this run."""

    def __init__(self, next_number: int) -> None:
        self.retries = 0
        self.common: dict[str, Any] = {}
        """What the lines of its trials take from the item's, even where that has no answer."""
        self._next_number = next_number
        self._trials: list[dict[str, Any]] = []
        self._seconds: dict[str, float] = defaultdict(float)

    @property
    def facts(self) -> dict[str, Any]:
        """Its trials, and the sum of its seconds by phase."""
        return {"trials": self._trials, "seconds": {name: round(value, 4) for name, value in self._seconds.items()}}

    def add(self, stage: Stage, number: int, result: StageResult, retries: int) -> list[dict[str, Any]]:
        """Take an attempt and return its trials; a stage that tells of no trial had one."""
        self.retries += retries
        self.common |= {name: result.facts[name] for name in ("image", "isolation") if name in result.facts}
        for phase, seconds in result.facts.get("seconds", {}).items():
            self._seconds[phase] += seconds
        trials = [
            {**trial, "attempt": number, "number": self._next_number + index}
            for index, trial in enumerate(result.facts.get("trials") or self._of_no_trial(stage, result))
        ]
        self._next_number += len(trials)
        self._trials += trials
        return trials

    @staticmethod
    def _of_no_trial(stage: Stage, result: StageResult) -> list[dict[str, Any]]:
        if not _is_of_an_attempt(result):
            return []
        facts = result.facts
        return [
            {
                "agent": stage.name,
                "scope": facts.get("scope", ""),
                "class": result.reason,
                "headline": result.headline,
                "score": facts.get("score"),
                "steps": (),
                "seconds": facts.get("seconds", {}),
            }
        ]


def _together(known: Mapping[int, StageResult], made: _Made) -> StageResult:
    """Return one answer for all attempts; its score, log and image are those of the attempt that shows best why."""
    numbers = sorted(known)
    by_reason: dict[str, list[int]] = {}
    for number in numbers:
        by_reason.setdefault(known[number].reason, []).append(number)
    passed, count = len(by_reason.pop("expected", ())), len(numbers)
    shown = _shown(known)
    low, high = interval(passed, count)
    attempts = {"passed": passed, "count": count, "low": round(low, 4), "high": round(high, 4)}
    facts = {**shown.facts, **made.facts, "attempts": attempts}
    others = _counted(by_reason)
    if passed == count:
        # What all of them say is no matter of one attempt.
        said = {result.headline for result in known.values()}
        return StageResult("expected", said.pop() if len(said) == 1 else "", "", facts)
    if passed:
        rate = f"{100 * passed / count:.0f} % (95 % interval {100 * low:.0f}-{100 * high:.0f} %)"
        headline = f"{passed}/{count} attempts gave the expected answer, {rate}; the others: {others}"
        return StageResult("flaky", headline, shown.log, facts)
    reason = max(by_reason, key=lambda reason: len(by_reason[reason]))
    if len(by_reason) == 1:
        return StageResult(reason, f"{shown.headline}; the same in all {count} attempts", shown.log, facts)
    return StageResult(reason, f"no attempt of {count} gave the expected answer: {others}", shown.log, facts)


def _shown(known: Mapping[int, StageResult]) -> StageResult:
    """The first failure of the most frequent class, best one of this run since its log is at hand; else the last."""
    failures = [known[number] for number in sorted(known) if known[number].verdict is not Verdict.PASS]
    if not failures:
        return known[max(known)]
    reason = Counter(result.reason for result in failures).most_common(1)[0][0]
    alike = [result for result in failures if result.reason == reason]
    return next((result for result in alike if result.log), alike[0])


def _counted(by_reason: Mapping[str, Sequence[int]]) -> str:
    """Name classes, how often each came, and in which attempts, the most frequent first."""
    parts = []
    for reason, numbers in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        named = ", ".join(map(str, numbers[:MOST_NUMBERS])) + (", ..." if len(numbers) > MOST_NUMBERS else "")
        parts.append(f"{reason} x {len(numbers)} (attempt{'s' if len(numbers) > 1 else ''} {named})")
    return ", ".join(parts)


def interval(passed: int, count: int) -> tuple[float, float]:
    """Return the equal-tailed 95 % Jeffreys interval of a rate of which ``passed`` of ``count`` were seen.

    Quantiles of Beta(c + 1/2, n - c + 1/2), with 0 and 1 as ends at c = 0 and c = n: Brown, Cai, DasGupta, Interval
    Estimation for a Binomial Proportion, Statistical Science 16 (2001).
    """
    from scipy.special import betaincinv  # type: ignore[import-untyped]

    a, b, tail = passed + 0.5, count - passed + 0.5, (1 - COVERAGE) / 2
    low = 0.0 if passed == 0 else float(betaincinv(a, b, tail))
    high = 1.0 if passed == count else float(betaincinv(a, b, 1 - tail))
    return low, high
