"""What the pages say of reviews: criterion by outcome, and of each task what was found, with its quotes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_otval.judge.model import Evidence, Judgement, Review
from pytest_otval.report.html.blocks import Block, Cell, link, name_of, number, table, words
from pytest_otval.report.judge_summary import COLUMNS, WHAT, by_judge, cost_of, counts_of, kappa_of
from pytest_otval.report.results import Row, split_id
from pytest_otval.report.text import clean, one_line

MOST_LETTERS = 4000
"""Of an explanation or a quote."""

Link = Callable[[Review, Evidence], Mapping[str, Any]]
"""Where a quote leads: ``state`` of another view, ``href`` of another page, or nothing."""


def reviews_overview(rows: Sequence[Row]) -> list[Block]:
    """Return the first page: what each judge said of how many tasks, and the tasks."""
    blocks: list[Block] = []
    for (kind, model), reviews in by_judge(rows).items():
        kappa = kappa_of(reviews)
        agreed = "" if kappa is None else f" Kappa of the first two votes: {kappa:.3f}."
        classes = Counter(review.classification for review in reviews if review.classification)
        told = ", ".join(f"{name_of(name)} {count}" for name, count in classes.most_common())
        lines = [f"They took {cost_of(reviews)}.{agreed}", *([f"With their rewards they are: {told}."] if told else [])]
        title = f"Reviews of {WHAT.get(kind, name_of(kind))} by {name_of(model)}: {len(reviews)}"
        cells = [
            [name_of(name), *(number(one[column]) for column in COLUMNS)] for name, one in counts_of(reviews).items()
        ]
        # Each table has a title of its own, by which the page keeps its order.
        blocks += [
            words(title, lines),
            table(f"Criteria: {name_of(model)}, {name_of(kind)}", ("Criterion", *COLUMNS), cells),
        ]
    return [*blocks, table("Tasks", ("Task", "Stage", "Class", "Fails", "that decide"), map(_task_cells, rows))]


def _task_cells(row: Row) -> list[Cell]:
    judged = [one for review in row.reviews for one in review.judged]
    decide = sum(one.standing in ("stands", "executed") for one in judged)
    shown = link(f"{row.dataset}/{row.task}", dataset=row.dataset, task=row.task)
    fails = sum(one.outcome == "fail" for one in judged)
    return [shown, name_of(row.stage), name_of(row.reason), number(fails), number(decide)]


def review_blocks(review: Review, lead: Link) -> Iterator[Block]:
    """Yield what is shown of one review: findings first, then every criterion."""
    item = split_id(review.subject)[2]
    what = f"{item or review.subject}: {review.classification}" if review.subject else "The task"
    title = one_line(f"{what}, reviewed by {review.model}", 300)
    fails = [one for one in review.judgements if one.standing or one.opinion.dropped]
    findings = [_finding(one, review, lead) for one in sorted(fails, key=lambda one: one.standing not in _LOUD)]
    yield {"kind": "findings", "title": title, "rows": findings, "note": _left_out(review.left_out)}
    heads = ("Criterion", "Outcome", "Standing", "Votes")
    yield table(f"Criteria: {name_of(item or 'the task')}", heads, map(_criterion_cells, review.judgements))


_LOUD = ("executed", "stands")


def _left_out(lines: Iterable[str]) -> str:
    told = "; ".join(one_line(line, 200) for line in lines)
    return f"Not shown to the judge: {told}" if told else ""


def _finding(judgement: Judgement, review: Review, lead: Link) -> dict[str, Any]:
    opinion = judgement.opinion
    how = judgement.standing or opinion.dropped.partition(":")[0]
    return {
        "head": one_line(f"{judgement.criterion}: {judgement.outcome}, {how}", 300),
        "loud": judgement.standing in _LOUD,
        "text": _shown(opinion.explanation),
        "fix": _shown(opinion.fix),
        "why": _shown(judgement.why),
        "measured": _shown(judgement.measured),
        "candidate": _shown(opinion.candidate),
        "quotes": [{"where": _where(one), "quote": _shown(one.quote), **lead(review, one)} for one in opinion.evidence],
    }


def _where(evidence: Evidence) -> str:
    return one_line(evidence.document if evidence.line is None else f"{evidence.document}:{evidence.line}", 300)


def _shown(text: str) -> str:
    return clean(str(text)[:MOST_LETTERS])


def _criterion_cells(judgement: Judgement) -> list[Cell]:
    votes = ", ".join(judgement.votes) if len(judgement.votes) > 1 else ""
    told = (judgement.criterion, judgement.outcome.replace("_", " "), judgement.standing or "", votes)
    return [name_of(one) for one in told]
