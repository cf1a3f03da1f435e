"""Reviews, for the tests of reports."""

from __future__ import annotations

from pytest_otval.judge.model import Evidence, Judgement, Opinion, Review, Spending
from pytest_otval.ledger import Line
from selftests.report.ledgers import line


def judgement(criterion: str, outcome: str = "pass", standing: str | None = None, votes=None, **opinion) -> Judgement:
    """Return a judgement; what is told beside is of its opinion."""
    return Judgement(criterion, outcome, votes or (outcome,), Opinion(criterion, outcome, **opinion), standing)


def fail(criterion: str, standing: str = "stands", document: str = "tests/test.sh", quote: str = "exit 0", at: int = 2):
    """Return a fail with one quote."""
    evidence = (Evidence(document, quote, at),)
    words = {"explanation": f"{criterion} is wrong", "fix": "mend it"}
    return judgement(criterion, "fail", standing, evidence=evidence, **words)


def review(*judgements: Judgement, kind: str = "instruction", subject: str = "", model: str = "j", **fields) -> Review:
    """Return a review that took a cent."""
    spent = {"spending": Spending(2, 1, 900, 100, 0.01), **fields}
    return Review(kind, subject, "r" * 16, model, judgements, **spent)


def judged(*reviews: Review, task: str = "a", stage: str = "judge_task", reason: str = "expected", **fields) -> Line:
    """Return the result line of reviews."""
    return line(task, stage, reason, judge=[one.as_dict() for one in reviews], **fields)
