"""What a judge is shown: documents and facts. And whether a quote stands in them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_otval.judge.model import Evidence

LEAST_QUOTE = 4
"""Signs other than blanks that a quote must have: shorter ones stand in any text."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file of a task, or a step of a trace, as it is shown."""

    name: str
    """Printable: a path in the task's folder with ``/``, ``instruction``, ``step 3``."""
    text: str
    gaps: tuple[tuple[int, int], ...] = ()
    """Where it is cut: from which place of the text on lines have how much higher numbers in the whole document."""

    def find(self, quote: str) -> tuple[int, str] | None:
        """Return the 1-based line in the whole document where a quote begins, and its words as they stand there.

        Blanks and line ends count as one blank. None where it does not stand in what is shown.
        """
        found = _find(self.text, quote)
        if found is None:
            return None
        hidden = sum(lines for place, lines in self.gaps if place <= found.start)
        return self.text.count("\n", 0, found.start) + hidden + 1, self.text[found]


@dataclass(frozen=True, slots=True)
class Material:
    """What is told of one task or one attempt."""

    documents: tuple[Document, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """In plain JSON types: what was counted of an attempt. Nothing of its score."""
    left_out: tuple[str, ...] = ()
    """What is not shown, in words."""


def locate(material: Material, evidence: Evidence) -> Evidence | None:
    """Return the evidence with document and line where its quote stands, in the words that stand there.

    The document that it names is looked at first, then the others in their order. None: it stands nowhere in what is
    shown, or is shorter than LEAST_QUOTE.
    """
    if len("".join(evidence.quote.split())) < LEAST_QUOTE:
        return None
    named = evidence.document.strip()
    for document in sorted(material.documents, key=lambda one: one.name != named):
        if found := document.find(evidence.quote):
            line, quote = found
            return Evidence(document.name, quote, line)
    return None


def _find(text: str, quote: str) -> slice | None:
    """Return where a quote stands in a text, whatever the blanks; in linear time, since both are hostile."""
    words = list(re.finditer(r"\S+", text))
    wanted = " ".join(quote.split())
    at = " ".join(word[0] for word in words).find(wanted)
    if at < 0:
        return None
    starts = list(_starts(words))
    ends = at + len(wanted) - 1
    first, last = (bisect_right(starts, place) - 1 for place in (at, ends))
    return slice(words[first].start() + at - starts[first], words[last].start() + ends - starts[last] + 1)


def _starts(words: list[re.Match[str]]) -> Iterator[int]:
    """Yield where each word begins, once there is one blank between them."""
    at = 0
    for word in words:
        yield at
        at += len(word[0]) + 1
