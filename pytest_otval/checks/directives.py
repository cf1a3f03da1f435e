"""Comments that allow a finding: ``# otval: allow CHECK-ID because REASON``, in Markdown ``<!-- otval: ... -->``.

A comment covers its own line and, where it stands alone, the next one; comments of ours may stand one above the other.
One in the comments at the top of a file covers what is said of the whole file and of its first line too, above which
no comment can stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MARK = b"otval:"
"""What a file holds if it has such a comment."""

MAX_DIRECTIVES = 200
"""Of one file."""

_COMMENT = re.compile(r"(?P<lead>#|<!--|//|--|;|/\*)[ \t]*otval:[ \t]*allow(?![\w-])(?P<rest>[^\n]*)")
_REST = re.compile(r"(?P<ids>[\w-]+(?:[ \t]*,[ \t]*[\w-]+)*)(?:[ \t]+because(?![\w-])(?P<reason>.*))?", re.DOTALL)
_HEAD = re.compile(r"\s*(?:#|<!--|//|--|;|/\*|\*|$)")


@dataclass(frozen=True, slots=True)
class Directive:
    """One id of such a comment."""

    check: str
    """Empty where the comment names none."""
    reason: str
    """Empty where it gives none, so that it allows nothing."""
    line: int
    lines: frozenset[int]
    """The lines it covers."""
    whole: bool
    """Whether it covers what is said of the whole file."""

    def covers(self, line: int | None) -> bool:
        """Whether it covers a finding on this line; None is the whole file."""
        return self.whole if line is None else line in self.lines


def directives(path: str, text: str) -> Iterator[Directive]:
    """Yield what the comments of a file say, id by id."""
    lines = text.split("\n")
    in_markdown = path.lower().endswith((".md", ".markdown"))
    found = {}
    for number, line in enumerate(lines, start=1):
        match = _COMMENT.search(line) if "otval:" in line else None
        # In Markdown # is a heading, which the agent reads.
        if match is not None and (not in_markdown or match["lead"] == "<!--"):
            found[number] = match
            if len(found) == MAX_DIRECTIVES:
                break
    alone = {number for number, match in found.items() if not lines[number - 1][: match.start()].strip()}
    head = _head(lines) if found else 0
    for number, match in found.items():
        covered = {number}
        if number in alone:
            below = next(line for line in range(number + 1, len(lines) + 2) if line not in alone)
            covered.add(below)
        if number <= head:
            covered.add(1)
        for check, reason in _parsed(match["rest"], match["lead"]):
            yield Directive(check, reason, number, frozenset(covered), number <= head)


def _head(lines: list[str]) -> int:
    """Return the number of the last line of the comments at the top."""
    return next((number for number, line in enumerate(lines) if not _HEAD.match(line)), len(lines))


def _parsed(rest: str, lead: str) -> Iterator[tuple[str, str]]:
    text = rest.strip()
    for end in {"<!--": ("-->",), "/*": ("*/",)}.get(lead, ()):
        text = text.partition(end)[0].strip()
    match = _REST.fullmatch(text)
    if match is None:
        yield "", ""
        return
    for check in match["ids"].split(","):
        yield check.strip(), (match["reason"] or "").strip()
