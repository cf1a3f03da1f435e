"""What both stages of the judge share: how a model is asked for a review, and what reviews come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pytest_otval.core import Conclusion, OtvalUsageError, StageResult, printable
from pytest_otval.judge.cache import CachedChat
from pytest_otval.judge.calibration import Calibration, measured
from pytest_otval.judge.material import Material
from pytest_otval.judge.model import Criterion, Judgement, Kind, Review, Rubric
from pytest_otval.judge.prompts import review_messages
from pytest_otval.judge.refute import refute
from pytest_otval.judge.review import UnreadableError, review
from pytest_otval.llm.chat import BudgetSpentError, Chat, ContextOverflowError, EndpointError
from pytest_otval.profile import ModelSection
from pytest_otval.stages.judge_execution import Executions
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import Question

MOST_CHARACTERS = 240_000
"""Of what is shown, some 60,000 tokens: attention is short, and tokens cost."""
LEAST_CHARACTERS = 4_000
"""With less nothing could be judged."""
CHARACTERS_A_TOKEN = 3
"""Of scripts and logs, rather less than more."""
ANSWER_TOKENS = 8_000
"""For an answer, and as much for the one that is to be repaired."""

_LOG_CHARACTERS = 4096
_QUOTE_LETTERS = 160
_DECIDING = ("stands", "executed")


class Judge:
    """Who reviews one task, by one rubric."""

    def __init__(self, machine: Machine, question: Question, kind: Kind, chat: Chat | None = None) -> None:
        """``chat`` stands for the model. Raises Conclusion: the model's context is too short."""
        self._machine = machine
        self._chat = chat
        self._group = question.task.dataset
        self._executions = Executions(machine, question)
        self.model = machine.settings.run.judge
        try:
            self.rubric = machine.rubric(kind)
            self.calibration = machine.calibration(kind)
            self.section = machine.model_section(self.model)
            self.characters = characters_for(self.rubric, self.section)
        except OtvalUsageError as error:
            raise Conclusion("endpoint-failed", str(error)) from None

    @property
    def trials(self) -> list[dict[str, Any]]:
        """Those that were run of what was claimed, as lines of the ledger know them."""
        return self._executions.trials

    def review(self, material: Material, subject: str = "") -> Review:
        """Return the review of what is shown, every fail with its standing. Raises Conclusion."""
        try:
            self._machine.budget.require()
            found = self.asked(material, subject)
        except BudgetSpentError as error:
            raise Conclusion("budget-spent", str(error)) from None
        except UnreadableError as error:
            raise Conclusion("judge-unreadable", str(error)) from None
        except ContextOverflowError as error:
            words = "say in the cluster profile how long its context is (context = TOKENS)"
            raise Conclusion("endpoint-failed", f"{error}: {words}") from None
        except (EndpointError, OtvalUsageError) as error:
            raise Conclusion("endpoint-failed", str(error)) from None
        criteria = {one.id: one for one in self.rubric.criteria}
        judgements = tuple(self._executions.decide(criteria[one.criterion], one) for one in found.judgements)
        return replace(found, judgements=judgements)

    def asked(self, material: Material, subject: str = "") -> Review:
        """Return the review as the model gives it: no trial was run. Raises what a Chat raises, and UnreadableError."""
        found = review(self._voter, self.rubric, material, subject, self._machine.settings.run.votes)
        return refute(self._voter, self.rubric, found, material)

    def _voter(self, vote: int) -> CachedChat:
        chat = self._chat or self._machine.chat(self.model, vote)
        return CachedChat(chat, self._machine.judge_answers, self._group, self.section.of_answers, vote)


def characters_for(rubric: Rubric, section: ModelSection) -> int:
    """Return how many characters of material a model can be shown. Raises OtvalUsageError where it takes too few."""
    if section.context is None:
        return MOST_CHARACTERS
    asked = sum(len(message["content"]) for message in review_messages(rubric, Material(())))
    room = (section.context - 2 * ANSWER_TOKENS) * CHARACTERS_A_TOKEN - asked
    if room < LEAST_CHARACTERS:
        words = f"a context of {section.context} tokens is too short for {rubric.source or 'the rubric'}"
        raise OtvalUsageError(f"{words}: judge with a model that takes more, or by fewer criteria")
    return min(room, MOST_CHARACTERS)


def with_advice(reviewed: Review, rubric: Rubric, calibration: Calibration | None = None) -> Review:
    """Return a review in which what stands and does not block is ``advisory``, and each fail says what was measured.

    Neither does a criterion block below the floor of a calibration; what a trial showed needs nobody's word.
    """
    advice = {one.id for one in rubric.criteria if not one.blocking} | (calibration.advisory if calibration else set())

    def told(one: Judgement) -> Judgement:
        if one.outcome != "fail":
            return one
        standing = "advisory" if one.standing == "stands" and one.criterion in advice else one.standing
        return replace(one, standing=standing, measured=measured(calibration, one.criterion))

    return replace(reviewed, judgements=tuple(map(told, reviewed.judgements)))


def concluded(judge: Judge, reviews: Sequence[Review], passed: str) -> StageResult:
    """Return the answer that reviews come to; ``passed`` is what is told where nothing blocks."""
    told = [with_advice(one, judge.rubric, judge.calibration) for one in reviews]
    facts = {"judge": [one.as_dict() for one in told], "trials": judge.trials}
    blocking = {one.id: one for one in judge.rubric.criteria if one.blocking}
    faults = [
        (blocking[judgement.criterion], judgement)
        for one in told
        for judgement in one.judgements
        if judgement.standing in _DECIDING and judgement.criterion in blocking
    ]
    if not faults:
        return StageResult("expected", passed, "", facts)
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return StageResult("judged-faulty", f"{_headline(*faults[0])}{more}", _log(faults), facts)


def outcomes_told(reviewed: Review) -> str:
    """Return in words how many criteria have which outcome."""
    counts = Counter(one.outcome for one in reviewed.judgements)
    return ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in counts.most_common())


def _headline(criterion: Criterion, judgement: Judgement) -> str:
    where = next((f"{one.document}:{one.line}: " for one in judgement.opinion.evidence), "")
    said = " ".join(judgement.opinion.explanation.split())[:_QUOTE_LETTERS] or criterion.question
    return printable(f"{criterion.id}: {where}{said}")


def _log(faults: Iterable[tuple[Criterion, Judgement]]) -> str:
    """Return what shows the faults; the last line, by which reports put items together, is of the first."""
    return "\n".join(line for fault in reversed(list(faults)) for line in _lines(*fault))[-_LOG_CHARACTERS:]


def _lines(criterion: Criterion, judgement: Judgement) -> Iterator[str]:
    for one in judgement.opinion.evidence:
        quote = printable(" ".join(one.quote.split())[:_QUOTE_LETTERS])
        yield f"  {printable(one.document)}:{one.line}: {quote}"
    if judgement.standing == "executed":
        yield f"  {printable(judgement.why)}"
    yield f"{criterion.id} ({judgement.standing}): {printable(' '.join(judgement.opinion.explanation.split()))}"
