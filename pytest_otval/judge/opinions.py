"""What a model's answer says, read strictly enough to count and leniently enough not to be lost over form.

An answer is JSON: ``{"criteria": {ID: {"outcome": ..., "explanation": ..., "evidence": [{"document": ..., "quote":
...}], "fix": ..., "candidate": ...}}}``. Models put it into fences, or words around it; some give the criteria as a
list with ``id``, or without the outer object. Whatever comes, nothing is raised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_otval.judge.model import OUTCOMES, Criterion, Evidence, Opinion, Outcome, Rubric

MOST_CHARS = 1_000_000
"""A longer answer is not read: no review of a rubric needs a tenth of it."""
MOST_TEXT = 4000
"""Characters of an explanation, a quote or a fix that are kept."""
MOST_EVIDENCE = 10
"""Quotes of one opinion that are kept."""
MOST_CANDIDATE = 64 * 1024
"""Characters of a candidate; half a script is none, so a longer one is not kept."""
_MOST_BROKEN = 200
"""After so many beginnings of JSON objects that are none no more are looked at."""
_BEGIN = re.compile(r'\{\s*"')

_WORDS: Mapping[str, Outcome] = {**{one: one for one in OUTCOMES}, "n/a": "not_applicable", "na": "not_applicable"}
_TWICE = object()
"""Stands for the value of a name that an object has more than once: which of them is meant, nobody knows."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What one answer says."""

    opinions: Mapping[str, Opinion]
    """By criterion."""
    problems: Mapping[str, str]
    """What is missing or wrong, in one line, by criterion; of the answer as a whole under an empty name."""


def read_opinions(text: str, rubric: Rubric) -> Answered:
    """Return the opinions of an answer about the criteria of a rubric."""
    ids = {one.id for one in rubric.criteria}
    told = found_object(text, lambda values: bool(ids & _by_id(values).keys()))
    if told is None:
        return Answered({}, {"": "the answer holds no JSON object with the criteria"})
    values = _by_id(told)
    opinions, problems = {}, {}
    for criterion in rubric.criteria:
        opinion, wrong = _opinion(criterion, values.get(criterion.id))
        if wrong:
            problems[criterion.id] = "; ".join(wrong)
        if opinion is not None:
            opinions[criterion.id] = opinion
    unknown = len(values.keys() - ids)
    # What is unknown alone asks for no repair; where something is missing it may be what was meant.
    if unknown and len(opinions) < len(ids):
        problems[""] = f"{unknown} of its criteria do not exist"
    return Answered(opinions, problems)


def found_object(text: str, wanted: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any] | None:
    """Return the last JSON object of a text that is ``wanted``: models think first, and answer in the end."""
    found = [values for values in _objects(text) if wanted(values)]
    return found[-1] if found else None


def text_of(value: object, most: int = MOST_TEXT) -> str:
    """Return a text that can be written anywhere, cut; empty for what is none."""
    return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")[:most] if isinstance(value, str) else ""


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    if len(text) > MOST_CHARS:
        return
    decoder = json.JSONDecoder(object_pairs_hook=_once)
    at = broken = 0
    while broken < _MOST_BROKEN and (begin := _BEGIN.search(text, at)):
        try:
            values, at = decoder.raw_decode(text, begin.start())
            yield values
        except (ValueError, RecursionError):
            at = begin.end()
            broken += 1


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        values[name] = _TWICE if name in values else value
    return values


def _by_id(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of criteria by id, in whichever of the forms they came."""
    inner = values.get("criteria", values)
    if isinstance(inner, list):
        pairs = [(one["id"], one) for one in inner if isinstance(one, Mapping) and isinstance(one.get("id"), str)]
        return _once(pairs)
    return inner if isinstance(inner, Mapping) else {}


def _opinion(criterion: Criterion, value: object) -> tuple[Opinion | None, list[str]]:
    """Return the opinion that a value is, and what is wrong with it."""
    if value is None:
        return None, ["it has no answer"]
    if value is _TWICE:
        return None, ["it has two answers"]
    if not isinstance(value, Mapping):
        return None, ["its answer is no object"]
    said = value.get("outcome")
    outcome = _WORDS.get(said.strip().lower().replace(" ", "_")) if isinstance(said, str) else None
    if outcome is None or (outcome == "not_applicable" and not criterion.not_applicable):
        allowed = [one for one in OUTCOMES if one != "not_applicable" or criterion.not_applicable]
        return None, [f"its outcome must be one of {', '.join(allowed)}"]
    evidence, wrong = _evidence(value.get("evidence"))
    candidate = text_of(value.get("candidate"), MOST_CANDIDATE + 1)
    if len(candidate) > MOST_CANDIDATE:
        candidate, wrong = "", [*wrong, f"its candidate has more than {MOST_CANDIDATE} characters"]
    explanation, fix = text_of(value.get("explanation")), text_of(value.get("fix"))
    return Opinion(criterion.id, outcome, explanation, evidence, fix, candidate), wrong


def _evidence(value: object) -> tuple[tuple[Evidence, ...], list[str]]:
    if value is None:
        return (), []
    if not isinstance(value, list):
        return (), ["its evidence is no list"]
    pairs = [(text_of(one.get("document")), text_of(one.get("quote"))) for one in value if isinstance(one, Mapping)]
    found = [Evidence(document, quote) for document, quote in pairs if quote.strip()]
    wrong = ["a piece of its evidence is no object with document and quote"] if len(found) < len(value) else []
    return tuple(found[:MOST_EVIDENCE]), wrong
