"""What reviews would take, told without asking anybody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from pytest_otval.core import Conclusion
from pytest_otval.evidence import EvidenceError
from pytest_otval.judge.files import task_material
from pytest_otval.judge.material import Material
from pytest_otval.judge.prompts import review_messages
from pytest_otval.stages.judge_trace import attempts_at, material_of
from pytest_otval.stages.judging import Judge
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import Question, config_of
from pytest_otval.stages.spec import JUDGE_TASK, KIND_OF, Stage

CHARACTERS_A_TOKEN = 4
TOKENS_A_CRITERION = 100
"""Of an answer, about."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of some reviews; each fail takes another answer, to which as much is told."""

    reviews: int = 0
    known: int = 0
    """Those of which every answer is in the cache: they take nothing."""
    answers: int = 0
    """At least."""
    prompt: int = 0
    """Tokens, about, as the next one."""
    completion: int = 0
    usd: float | None = None
    """None where the profile knows no prices."""

    def __add__(self, other: Estimate) -> Estimate:
        """Return both."""
        usd = None if self.usd is None and other.usd is None else (self.usd or 0) + (other.usd or 0)
        return Estimate(
            self.reviews + other.reviews,
            self.known + other.known,
            self.answers + other.answers,
            self.prompt + other.prompt,
            self.completion + other.completion,
            usd,
        )

    def __str__(self) -> str:
        reviews = _counted(self.reviews, "review")
        if self.known == self.reviews:
            return f"{reviews}, all from the cache" if self.reviews else "nothing to be reviewed"
        cost = "" if self.usd is None else f", {self.usd:.4f} USD"
        known = f", {self.known} of them from the cache" if self.known else ""
        tokens = f"about {self.prompt} tokens to read and {self.completion} to write"
        return f"{reviews}{known}; at least {_counted(self.answers, 'answer')}, {tokens}{cost}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def estimate(stage: Stage, machine: Machine, question: Question) -> Estimate:
    """Return what an item of the judge would take; nothing for one that would not come to be asked."""
    try:
        config_of(question.task)
        judge = Judge(machine, question, KIND_OF[stage.mark], _Silent(machine.settings.run.judge))
        of_task = stage.mark == JUDGE_TASK.mark
        materials = _of_task(question, judge) if of_task else _of_attempts(machine, question, judge)
        return sum((_one(judge, material, machine.settings.run.votes) for material in materials), Estimate())
    except Conclusion:
        return Estimate()


def _of_task(question: Question, judge: Judge) -> Iterable[Material]:
    return [task_material(question.task, judge.characters)]


def _of_attempts(machine: Machine, question: Question, judge: Judge) -> Iterator[Material]:
    for line in attempts_at(machine, question):
        try:
            yield material_of(machine, question.task, line, judge.characters)
        except (EvidenceError, OSError):
            continue


def _one(judge: Judge, material: Material, votes: int) -> Estimate:
    try:
        judge.asked(material)
    except _AskedError:
        answers = min(votes, 2)
        told = sum(len(message["content"]) for message in review_messages(judge.rubric, material))
        prompt = answers * -(-told // CHARACTERS_A_TOKEN)
        completion = answers * len(judge.rubric.criteria) * TOKENS_A_CRITERION
        return Estimate(1, 0, answers, prompt, completion, _price(judge, prompt, completion))
    return Estimate(1, 1)


def _price(judge: Judge, prompt: int, completion: int) -> float | None:
    section = judge.section
    if section.usd_in is None or section.usd_out is None:
        return None
    return (prompt * section.usd_in + completion * section.usd_out) / 1e6


class _AskedError(Exception):
    """The model would be asked now."""


@dataclass(frozen=True, slots=True)
class _Silent:
    """A Chat that nobody answers in."""

    model: str

    def complete(self, *_: Any, **__: Any) -> NoReturn:
        """See Chat."""
        raise _AskedError
