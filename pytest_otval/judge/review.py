"""One review: a model is asked, its words are checked against what it was shown, and votes are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_otval.judge.agreement import fleiss_kappa
from pytest_otval.judge.cache import CachedChat
from pytest_otval.judge.material import Material, locate
from pytest_otval.judge.model import Criterion, Judgement, Opinion, Review, Rubric, Spending
from pytest_otval.judge.opinions import Answered, read_opinions
from pytest_otval.judge.prompts import answer_schema, repair_message, review_messages
from pytest_otval.llm.chat import Message

Voters = Callable[[int], CachedChat]
"""Gives the model for the conversation of one vote, from 0."""

MOST_REPEATED = 20_000
"""Characters of an answer that the model sees again when it is asked to repair it."""
_QUOTE_CHARS = 200


class UnreadableError(Exception):
    """What the model answered could not be read, once it was asked to repair it, either."""


def review(voters: Voters, rubric: Rubric, material: Material, subject: str = "", votes: int = 1) -> Review:
    """Return the review of what is shown; fails have no standing yet.

    ``votes``: how many answers there may be about a criterion. More than two are asked for only where the first two
    differ, and no longer than until an outcome has more than half of them. Raises UnreadableError, and what a Chat
    raises.
    """
    given: dict[str, list[Opinion]] = {one.id: [] for one in rubric.criteria}
    spending, kappa, model = Spending(), None, ""
    for number in range(votes):
        asked = tuple(one for one in rubric.criteria if not _settled(given[one.id], votes))
        if not asked:
            break
        chat = voters(number)
        for opinion in _opinions(chat, replace(rubric, criteria=asked), material):
            given[opinion.criterion].append(opinion)
        spending, model = spending + chat.spending, chat.model
        if number == 1:
            # Later votes are about those criteria alone in which these differ.
            kappa = fleiss_kappa([[one.outcome for one in opinions] for opinions in given.values()])
    judgements = tuple(_judgement(criterion, opinions) for criterion, opinions in given.items())
    left_out = material.left_out
    return Review(rubric.kind, subject, rubric.digest, model, judgements, kappa, left_out, spending)


def answer_format(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return what asks an endpoint for JSON of a schema."""
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


def _settled(opinions: Sequence[Opinion], votes: int) -> bool:
    if len(opinions) < 2:
        return False
    most = max(Counter(one.outcome for one in opinions).values())
    return most == len(opinions) or most > votes / 2


def _judgement(criterion: str, opinions: Sequence[Opinion]) -> Judgement:
    votes = tuple(one.outcome for one in opinions)
    outcome, count = Counter(votes).most_common(1)[0]
    if count > len(votes) / 2:
        return Judgement(criterion, outcome, votes, opinions[votes.index(outcome)])
    split = "fail" in votes
    shown = opinions[votes.index("fail")] if split else opinions[0]
    return Judgement(criterion, "uncertain", votes, shown, "split" if split else None)


def _opinions(chat: CachedChat, rubric: Rubric, material: Material) -> list[Opinion]:
    """Return one opinion of each criterion, after one repair where one is needed."""
    messages = review_messages(rubric, material)
    text, told = _asked(chat, messages, rubric, material)
    counting = told.opinions
    if told.problems:
        lines = [f"{name}: {words}" if name else words for name, words in told.problems.items()]
        before = {"role": "assistant", "content": text[:MOST_REPEATED] or "(nothing)"}
        _, repaired = _asked(chat, [*messages, before, repair_message(lines)], rubric, material)
        # An outcome with which nothing was wrong is not changed by a repair, nor is one made worse.
        mended = {
            name: one
            for name, one in repaired.opinions.items()
            if name not in counting or (name in told.problems and not one.dropped)
        }
        counting = {**counting, **mended}
    if not counting:
        raise UnreadableError(f"{chat.model}: neither its answer nor the repaired one holds any criterion's outcome")
    chat.keep()
    return [counting.get(one.id, Opinion(one.id, "uncertain", dropped="no answer")) for one in rubric.criteria]


def _asked(chat: CachedChat, messages: Sequence[Message], rubric: Rubric, material: Material) -> tuple[str, Answered]:
    reply = chat.complete(messages, answer_format("review", answer_schema(rubric)))
    text = reply.message["content"]
    told = read_opinions(text, rubric)
    opinions, problems = dict(told.opinions), dict(told.problems)
    if problems and reply.finish == "length":
        problems[""] = "the answer was cut off, since it was too long: be brief"
    for criterion in rubric.criteria:
        if criterion.id in opinions:
            opinion = opinions[criterion.id] = _checked(opinions[criterion.id], material)
            if wrong := _unproven(criterion, opinion):
                problems[criterion.id] = wrong
    return text, Answered(opinions, problems)


def _checked(opinion: Opinion, material: Material) -> Opinion:
    """Return the opinion with those of its quotes that are there; a fail without any is none."""
    found = tuple(there for one in opinion.evidence if (there := locate(material, one)) is not None)
    if opinion.outcome != "fail" or found:
        return replace(opinion, evidence=found)
    quoted = opinion.evidence
    dropped = f"quote not found: {quoted[0].quote[:_QUOTE_CHARS]}" if quoted else "no quote"
    return replace(opinion, outcome="uncertain", evidence=(), dropped=dropped)


def _unproven(criterion: Criterion, opinion: Opinion) -> str:
    if opinion.dropped:
        # The words of a quote may be a task's: outside of blocks they are not repeated.
        return f"a fail needs a quote that stands in a document ({opinion.dropped.partition(':')[0]})"
    if opinion.outcome == "fail" and criterion.execution and not opinion.candidate:
        return "a fail needs a candidate"
    return ""
