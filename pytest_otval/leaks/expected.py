"""Values that the tests expect, and files of the image that hold one: an agent that searches its image finds them.

A value counts that is long and of many signs, stands in no other file of the task than tests and solution, and is told
by the tests as expected. In the image it must stand by itself in a file that the instruction does not speak of: what an
agent is to take out of its input is in the image by nature.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.python_ast import nodes, parse_python
from pytest_otval.checks.registry import Place
from pytest_otval.images.contents import Contents
from pytest_otval.leaks.files import MAX_READ, MAX_TEXT, texts
from pytest_otval.leaks.gold import Gold

MIN_SIGNS, MIN_DIFFERENT = 12, 8
"""Of a value; shorter and plainer ones are in an image by chance."""
MAX_SIGNS = 4096
MAX_VALUES = 64
_EXPECTING = re.compile(r"expect|answer|secret|flag|truth|gold|password|token", re.IGNORECASE)
_EXPECTED_FILE = re.compile(r"(?:.*[_.-])?(?:expected|answer|truth|golden?|flag)s?(?:[_.-].*)?", re.IGNORECASE)
_NAME = re.compile(r"[\w-]+(?:\.[\w-]+)*")
_TOO_PLAIN = re.compile(r"(?:https?:/)?/?[\w.-]*(?:/[\w.*{}-]*)+|[A-Za-z_][\w.]*|[a-z ,.'-]+")
"""Paths, addresses, one word or name, a plain sentence."""


@dataclass(frozen=True, slots=True)
class Value:
    """A text that the tests expect."""

    text: str
    path: str
    """The file of the task that has it."""
    line: int


def expected_values(context: CheckContext) -> tuple[Value, ...]:
    """Return what the tests expect and the agent cannot know from the files of the task that it is given."""
    found: dict[str, Value] = {}
    for value in _told(context):
        found.setdefault(value.text, value)
    given = [context.source(context.relative(step.instruction)) for step in context.steps]
    given += [*context.sources("environment"), *context.sources("setup_files")]
    known = "\n".join(source.text for source in given if source is not None)
    return tuple(value for value in found.values() if value.text not in known)[:MAX_VALUES]


def _told(context: CheckContext) -> Iterator[Value]:
    for entry in context.test_files:
        source = context.source(entry.path)
        if source is None or not source.whole or source.is_binary:
            continue
        if entry.path.endswith(".py"):
            module = parse_python(source.text)
            for text, line in _expected(module) if module is not None else ():
                if _is_telling(text):
                    yield Value(text, entry.path, line)
        elif _EXPECTED_FILE.fullmatch(posixpath.basename(entry.path)) and _is_telling(source.text.strip()):
            yield Value(source.text.strip(), entry.path, 1)


def _expected(module: ast.Module) -> Iterator[tuple[str, int]]:
    for node in nodes(module):
        if isinstance(node, ast.Compare) and all(isinstance(one, ast.Eq) for one in node.ops):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Assign) and any(_expects(target) for target in node.targets):
            sides = [node.value]
        else:
            continue
        for side in sides:
            if isinstance(side, ast.Constant) and isinstance(side.value, str):
                yield side.value.strip(), side.lineno


def _expects(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and _EXPECTING.search(target.id) is not None


def _is_telling(text: str) -> bool:
    return (
        MIN_SIGNS <= len(text) <= MAX_SIGNS
        and len(set(text)) >= MIN_DIFFERENT
        and ("\n" in text or (_TOO_PLAIN.fullmatch(text) is None or _is_random(text)))
    )


def _is_random(text: str) -> bool:
    """Whether a word is no name: it has digits among its letters in several places."""
    return len(re.findall(r"[A-Za-z](?=\d)|\d(?=[A-Za-z])", text)) >= 3


def values_in(context: CheckContext, contents: Contents) -> tuple[list[Place], bool]:
    """Look for files of the image that hold a value which the tests expect.

    Returns a place for each value that was found, and whether all was read that had to be.
    """
    places: list[Place] = []
    wanted = {value.text.encode("utf-8", "surrogateescape"): value for value in expected_values(context)}
    sources = [context.source(context.relative(step.instruction)) for step in context.steps]
    said = {word for source in sources if source is not None for word in _NAME.findall(source.text)}
    left = MAX_READ
    for number, path, size in texts(contents, Gold()) if wanted else ():
        name = posixpath.basename(path)
        node = contents.shown(number, path) if name not in said else None
        if node is None:
            continue
        left -= size
        if left < 0:
            return places, False
        raw = contents.read(node, MAX_TEXT)
        for text in [text for text in wanted if text in raw]:
            line = _line_of(text, raw)
            if line is not None:
                value = wanted.pop(text)
                places.append(Place(value.path, f"the image has what is expected here, at /{path}:{line}", value.line))
        if not wanted:
            break
    return places, True


def _line_of(text: bytes, raw: bytes) -> int | None:
    """Return the line at which a text stands by itself, not as a part of a longer word."""
    found = _alone(text).search(raw)
    return None if found is None else raw.count(b"\n", 0, found.start()) + 1


@lru_cache(maxsize=256)
def _alone(text: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?<![\w-])" + re.escape(text) + rb"(?![\w-])")
