"""Markdown that commands write: texts that say just what they say, tables, and the part of a file that is made anew."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pytest_otval.core import OtvalUsageError
from pytest_otval.report.text import one_line

_MARKUP = re.compile(r"[\\`*_{}\[\]<>#!|~&$@]|:(?=\S)|(?<=www)\.", re.I)
"""What may begin markup, an entity, an address or a mention, in the Markdown of CommonMark or of GitHub."""


def literal(text: str) -> str:
    """Return a text that somebody else wrote as one line of Markdown that says just that."""
    return _MARKUP.sub(r"\\\g<0>", one_line(text))


def table(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table of cells that are Markdown already; the first row is its head."""
    for number, row in enumerate(rows):
        yield f"| {' | '.join(row)} |"
        if number == 0:
            yield f"|{'---|' * len(row)}"


def put_between_marks(file: Path, name: str, lines: Iterable[str]) -> None:
    """Write lines into a file between its marks; see ``between_marks``. Raises OtvalUsageError, OSError."""
    file.write_text(between_marks(file, name, lines), encoding="utf-8")


def between_marks(file: Path, name: str, lines: Iterable[str]) -> str:
    """Return a file's text with other lines between ``<!-- NAME -->`` and ``<!-- /NAME -->``; all else in it is kept.

    Raises OtvalUsageError where the marks are missing.
    """
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise OtvalUsageError(f"{file} has no place for the table: write {begin} and {end} into it")
    return "\n".join([f"{head}{begin}", *lines, f"{end}{tail}"])
