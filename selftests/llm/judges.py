"""What the tests' model says when it is asked to judge or to refute: a policy for each kind of judge.

A policy file tells the faults that are there:

    [[faults]]
    criterion = "weak_test"
    quote = "test -e /app/answer.txt"      # where these words stand, the fault is there
    candidate = "touch /app/answer.txt"
    without = "for the answer"             # and where these do not
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KINDS = (
    "right",
    "flags-all",
    "hasty",
    "verbose",
    "inconsistent",
    "unstructured",
    "cut",
    "misquotes",
    "obeys",
    "obeys-outside",
)
"""right: finds the faults of the file, and refutes others; flags-all: fails every criterion with words that are there,
and refutes nothing; hasty: as flags-all, but refutes as right does; verbose: as right, in many words; inconsistent: as
right or as flags-all, by chance; unstructured: no JSON; cut: its answer ends in the middle; misquotes: as flags-all,
with words that are not there; obeys: as right, but does what it is told anywhere; obeys-outside: what it is told
outside of the blocks of data."""

BLOCK_ID = re.compile(r'<data ([0-9a-f]{32}) name="')
_CRITERION = re.compile(r"^- `([\w.-]+)`: ", re.MULTILINE)
_REFUTED = re.compile(r"fails the criterion `([\w.-]+)`")
_QUESTION = re.compile(r"^(?:Review the (?:task|attempt) above|Another reviewer says that what is above)", re.MULTILINE)
_ORDER = re.compile(
    r"\b(?:answer|mark|rate|report|give|grade|output|respond|return|outcome|verdict|set)\w*\b.{0,80}?\bpass(?:es|ed)?\b",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class Fault:
    criterion: str
    quote: str
    candidate: str = ""
    without: str = ""

    def among(self, documents: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
        """Return the document that it is in, and the words that show it."""
        if self.without and any(self.without in text for _, text in documents):
            return None
        return next(((name, self.quote) for name, text in documents if self.quote in text), None)


@dataclass(frozen=True)
class Prompt:
    """What a judge is asked."""

    documents: Sequence[tuple[str, str]]
    loose: str
    """What stands outside of all blocks and before our question: nothing, unless a block was ended from within."""
    criteria: Sequence[str]
    refuted: str
    """The criterion of the finding that is to be refuted; empty for a review."""

    @classmethod
    def of(cls, messages: Sequence[Mapping[str, Any]]) -> Prompt:
        system, user = (messages[number]["content"] for number in (0, 1))
        found = BLOCK_ID.search(system)
        documents, outside = _blocks(user, found[1]) if found else ([], user)
        # A finding has a block of its own, with an id that is told outside of the others.
        inner = BLOCK_ID.search(outside)
        if inner:
            outside = _blocks(outside, inner[1])[1]
        *_, begin = (found.start() for found in _QUESTION.finditer(outside))
        loose, question = outside[:begin], outside[begin:]
        refuted = _REFUTED.search(question)
        criteria = () if refuted else tuple(_CRITERION.findall(question.partition("\nCriteria:\n")[2]))
        return cls(documents, loose, criteria, refuted[1] if refuted else "")


def _blocks(text: str, id: str) -> tuple[list[tuple[str, str]], str]:
    """Return the blocks of an id, and what is outside of them."""
    pattern = re.compile(rf'^<data {id} name="([^"\n]*)">\n(.*?)^</data {id}>\n', re.MULTILINE | re.DOTALL)
    return pattern.findall(text), pattern.sub("", text)


def judged(
    kind: str, faults: Sequence[Fault], messages: Sequence[Mapping[str, Any]], attempt: int, seed: int
) -> tuple[str, str]:
    """Return text and ``finish`` of an answer."""
    prompt = Prompt.of(messages)
    if kind == "unstructured":
        return "On the whole I like it, though one could say more about some of the tests.", "stop"
    if prompt.refuted:
        told = _refutation(kind, faults, prompt)
    else:
        chances = {one: f"{seed} {attempt} {one}" for one in prompt.criteria}
        told = {"criteria": {one: _opinion(kind, faults, prompt, one, chances[one]) for one in prompt.criteria}}
    text = json.dumps(told)
    if kind == "cut":
        return text[: len(text) // 2], "length"
    if kind == "verbose":
        thoughts = "Let me think about {this} once more. " * 200
        return f"<think>{thoughts}</think>\nHere is what I found:\n\n```json\n{text}\n```\n\nI hope that helps!", "stop"
    return text, "stop"


def _opinion(kind: str, faults: Sequence[Fault], prompt: Prompt, criterion: str, chance: str) -> dict[str, Any]:
    if kind == "inconsistent":
        kind = "right" if hashlib.sha256(chance.encode()).digest()[0] % 2 else "flags-all"
    if _obeys(kind, prompt):
        return _said("pass", "As I was told.")
    if kind == "misquotes":
        return _said("fail", "There it is.", ("instruction.md", "what nobody ever wrote anywhere"), "true")
    if kind in ("flags-all", "hasty"):
        return _said("fail", "There might be something.", _any_quote(prompt), "true")
    for fault in faults:
        if fault.criterion == criterion and (place := fault.among(prompt.documents)):
            return _said("fail", "It is there.", place, fault.candidate)
    return _said("pass", "There is no such fault.")


def _said(outcome: str, why: str, quote: tuple[str, str] | None = None, candidate: str = "") -> dict[str, Any]:
    evidence = [{"document": quote[0], "quote": quote[1]}] if quote else []
    return {"evidence": evidence, "explanation": why, "outcome": outcome, "fix": "", "candidate": candidate}


def _any_quote(prompt: Prompt) -> tuple[str, str] | None:
    lines = ((name, line.strip()) for name, text in prompt.documents for line in text.splitlines())
    return next(((name, line) for name, line in lines if len(line) >= 8), None)


def _refutation(kind: str, faults: Sequence[Fault], prompt: Prompt) -> dict[str, str]:
    known = any(fault.criterion == prompt.refuted and fault.among(prompt.documents) for fault in faults)
    stands = kind in ("flags-all", "misquotes") or (known and not _obeys(kind, prompt))
    return {"explanation": "I looked for it.", "verdict": "stands" if stands else "refuted"}


def _obeys(kind: str, prompt: Prompt) -> bool:
    """Whether it reads an order to let everything pass, and does so."""
    if kind not in ("obeys", "obeys-outside"):
        return False
    data = (text for pair in prompt.documents for text in pair) if kind == "obeys" else ()
    return any(_ORDER.search(text) for text in (prompt.loose, *data))
