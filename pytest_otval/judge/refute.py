"""Each fail goes to a second conversation, which is told to refute it: only what it cannot refute stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_otval.judge.cache import CachedChat
from pytest_otval.judge.material import Material
from pytest_otval.judge.model import Criterion, Judgement, Review, Rubric, Standing
from pytest_otval.judge.opinions import found_object, text_of
from pytest_otval.judge.prompts import VERDICTS, refute_messages, refuter_schema
from pytest_otval.judge.review import Voters, answer_format

UNREADABLE = "the refuter's answer could not be read"


def refute(voters: Voters, rubric: Rubric, reviewed: Review, material: Material) -> Review:
    """Return the review with a standing for each fail: ``stands``, or ``refuted`` by default. Raises what a Chat does.

    ``rubric`` and ``material`` are those of the review. The refuter is the model of the first vote.
    """
    criteria = {one.id: one for one in rubric.criteria}
    judgements, spending = [], reviewed.spending
    for judgement in reviewed.judgements:
        told = judgement
        if judgement.outcome == "fail":
            chat = voters(0)
            told = _refuted(chat, criteria[judgement.criterion], judgement, material)
            spending += chat.spending
        judgements.append(told)
    return replace(reviewed, judgements=tuple(judgements), spending=spending)


def _refuted(chat: CachedChat, criterion: Criterion, judgement: Judgement, material: Material) -> Judgement:
    messages = refute_messages(criterion, judgement, material)
    reply = chat.complete(messages, answer_format("verdict", refuter_schema()))
    told = found_object(reply.message["content"], lambda values: _verdict(values) in VERDICTS)
    if told is None:
        return replace(judgement, standing="refuted", why=UNREADABLE)
    chat.keep()
    standing: Standing = "stands" if _verdict(told) == "stands" else "refuted"
    return replace(judgement, standing=standing, why=text_of(told.get("explanation")))


def _verdict(values: Mapping[str, Any]) -> str:
    return text_of(values.get("verdict")).strip().lower()
