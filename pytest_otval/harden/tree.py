"""Shell scripts as concrete syntax trees: every command with the place of each word, and edits by place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field

from tree_sitter import Node as Syntax

UNKNOWN = "\0"
"""In a word: what only a shell knows."""

PLAIN = re.compile(r"[\w./+-]+", re.ASCII)
"""Paths that need no quotes, in whatever quotes they come to stand."""

_NOT_WORDS = frozenset(("variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect", "comment"))
_ONE_STATEMENT = frozenset(("redirected_statement", "list", "pipeline", "negated_command"))
_INSIDE_WORDS = frozenset(("variable_assignment", "command_substitution", "string", "concatenation", "command"))


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command."""

    text: str
    """Without quotes; ``UNKNOWN`` stands for each expansion."""
    source: str
    """As it is written."""
    start: int
    """In bytes, from the script's beginning."""
    end: int
    verbatim: bool
    """Whether its bytes but for a quote at either end are its text."""


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command."""

    node: Syntax
    words: tuple[Word, ...]
    line: int
    """1-based, in the whole script."""

    @property
    def texts(self) -> list[str]:
        """Its words."""
        return [word.text for word in self.words]

    @property
    def source(self) -> str:
        """The whole command as it is written, assignments in front of it too."""
        return _text(self.node)


@dataclass(slots=True)
class Edits:
    """Replacements of pieces of a script, by bytes; those made first win over any that overlap them."""

    made: list[tuple[int, int, str]] = field(default_factory=list)

    def replace(self, start: int, end: int, text: str) -> None:
        """Put a text in the place of bytes; nothing where some of them are replaced already."""
        if not any(start < other_end and other < end for other, other_end, _ in self.made):
            self.made.append((start, end, text))

    def insert(self, at: int, text: str) -> None:
        """Put a text between bytes; once, however often it is asked for."""
        if (at, at, text) not in self.made:
            self.made.append((at, at, text))

    def applied(self, source: bytes) -> bytes:
        """Return the script with all of them."""
        ordered = sorted(enumerate(self.made), key=lambda one: (one[1][0], one[1][1], one[0]))
        for _, (start, end, text) in reversed(ordered):
            source = source[:start] + to_bytes(text) + source[end:]
        return source


def nodes(root: Syntax) -> Iterator[Syntax]:
    """Yield a node and all below it, in the order of the text."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending += reversed(node.children)


def commands(root: Syntax, first_line: int = 1) -> Iterator[Command]:
    """Yield every simple command at any depth, in the order of the text."""
    for node in nodes(root):
        if node.type == "command":
            yield _command(node, first_line)
        elif node.type == "declaration_command":
            words = (_word(node.children[0]), *map(_word, _named(node)))
            yield Command(node, words, first_line + node.start_point[0])


def _named(node: Syntax) -> Iterable[Syntax]:
    return (child for child in node.children[1:] if child.is_named and child.type != "comment")


def _command(node: Syntax, first_line: int) -> Command:
    words = tuple(_word(child) for child in node.children if child.is_named and child.type not in _NOT_WORDS)
    return Command(node, words, first_line + node.start_point[0])


def _word(node: Syntax) -> Word:
    while node.type == "command_name" and node.child_count == 1:
        node = node.children[0]
    source = _text(node)
    plain = source
    if node.type == "raw_string":
        plain = source[1:-1]
    elif node.type == "string":
        known = all(child.type in ('"', "string_content") for child in node.children) and "\\" not in source
        plain = source[1:-1] if known else _with_unknown(node)
    elif node.child_count or "\\" in source:
        plain = _with_unknown(node)
    verbatim = UNKNOWN not in plain and node.type in ("raw_string", "word", "string")
    return Word(plain, source, node.start_byte, node.end_byte, verbatim)


def _with_unknown(node: Syntax) -> str:
    """Return what is known of a word."""
    if node.type in ("string", "concatenation", "command_name"):
        return "".join(_with_unknown(child) for child in node.children if child.type != '"')
    if node.type == "raw_string":
        return _text(node)[1:-1]
    if node.type in ("word", "string_content", "number") and "\\" not in _text(node):
        return _text(node)
    return UNKNOWN


def _text(node: Syntax) -> str:
    return to_text(node.text or b"")


def to_text(content: bytes) -> str:
    """Return a piece of a script as text; ``to_bytes`` gives back every byte, also what is no UTF-8."""
    return content.decode("utf-8", "surrogateescape")


def to_bytes(text: str) -> bytes:
    """Return what ``to_text`` was given."""
    return text.encode("utf-8", "surrogateescape")


def plain_words(words: Sequence[str], values: Set[str]) -> list[str]:
    """Return the words that are no options, nor values of the options in ``values``."""
    found, value = [], False
    for word in words:
        if value or word.startswith("-"):
            value = word in values
        else:
            found.append(word)
    return found


def statement_of(node: Syntax) -> Syntax:
    """Return the largest piece around a command that is one statement: what a new statement can stand in front of."""
    while node.parent is not None and node.parent.type in _ONE_STATEMENT | _INSIDE_WORDS:
        node = node.parent
    return node


def is_guarded(node: Syntax) -> bool:
    """Whether a command stands in an ``if`` that asks for OT_PYTHON."""
    above = node.parent
    while above is not None:
        if above.type == "if_statement":
            body = next((child for child in above.children if child.type == "then"), above)
            if b"OT_PYTHON" in (above.text or b"")[: body.start_byte - above.start_byte]:
                return True
        above = above.parent
    return False


def indent_of(source: bytes, at: int) -> str:
    """Return the blanks at the beginning of the line on which a byte stands."""
    line = source[source.rfind(b"\n", 0, at) + 1 : at].decode("utf-8", "replace")
    return line[: len(line) - len(line.lstrip())]
