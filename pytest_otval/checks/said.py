"""What an instruction says: its prose without code, and whether it names a file."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import lru_cache

from pytest_otval.checks.context import CheckContext, Source

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:\A|(?<=\n\n))(?:(?: {4}|\t)[^\n]*(?:\n|\Z)|[ \t]*\n)+", re.MULTILINE)
_SPAN = re.compile(r"(?<!`)(`+)(?!`)([^\n]*?[^`\n])\1(?!`)")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_PATTERN = re.compile(r"(?:[*}>\])]|\bN|\bX|\d)(\.\w+)\b")
"""The end of a name that stands for several: ``*.json``, ``<id>.json``, ``{name}.json``, ``part1.json``."""
_WORD = re.compile(r"[A-Za-z0-9]+(?:[\w\-]*[A-Za-z0-9])?")
_GOES_ON = re.compile(r"[\w\-]|\.\w")
_FOLDER_BACKWARDS = re.compile(r"[\w.~/\-]*")
_MAX_FOLDER = 300
_MAX_MENTIONS = 200
_MAX_PROSE = 128 * 1024
"""A longer text is no instruction that anybody wrote."""


@lru_cache(maxsize=2)
def instructions(context: CheckContext) -> tuple[Source, ...]:
    """Return each instruction of a task that can be read."""
    paths = dict.fromkeys(context.relative(step.instruction) for step in context.steps)
    found = [context.source(path) for path in paths]
    return tuple(source for source in found if source is not None and source.whole)


@lru_cache(maxsize=8)
def prose(text: str) -> str:
    """Return an instruction with code and comments blanked out, every line and column in its place.

    Empty where it is too long to be one.
    """
    if len(text) > _MAX_PROSE:
        return ""
    for pattern in (_FENCE, _COMMENT, _INDENTED, _SPAN):
        text = pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    return text


def line_at(text: str, position: int) -> int:
    """Return the 1-based line of a position."""
    return text.count("\n", 0, position) + 1


def names_file(text: str, path: str) -> bool:
    """Whether a text may mean the file at an absolute path: by its path, its name, its stem, or a pattern.

    The name as the end of another absolute path is another file.
    """
    folder, name = posixpath.split(path)
    mentions = list(_folders(text, name))
    if mentions:
        return any(written in ("", folder) or not written.startswith("/") for written in mentions)
    stem, suffix = posixpath.splitext(name)
    words, patterns = _vocabulary(text)
    return stem.lower() in words or suffix in patterns


def folders_of(text: str, name: str) -> list[str]:
    """Return the absolute folders in which a text puts files of a name."""
    return [folder for folder in _folders(text, name) if folder.startswith("/")]


def _folders(text: str, name: str) -> Iterator[str]:
    """Yield the folder of each of the first mentions of a name, empty where it stands alone."""
    position = -1
    for _ in range(_MAX_MENTIONS):
        position = text.find(name, position + 1)
        if position < 0:
            return
        if _GOES_ON.match(text, position + len(name)):
            continue
        before = _FOLDER_BACKWARDS.match(text[max(0, position - _MAX_FOLDER) : position][::-1])
        written = before[0][::-1] if before is not None else ""
        if not written or written.endswith("/"):
            yield posixpath.normpath(written) if written else ""


@lru_cache(maxsize=8)
def _vocabulary(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of a text that may be the stem of a name, in lower case, and the ends of patterns of names."""
    return frozenset(word.lower() for word in _WORD.findall(text)), frozenset(_PATTERN.findall(text))
