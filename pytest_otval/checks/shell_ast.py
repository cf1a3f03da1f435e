"""Shell scripts as a small tree: what decides which command runs after which, and with which words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple


@dataclass(frozen=True, slots=True)
class Variable:
    """``$NAME`` or ``${NAME}``; ``default`` is the word of ``${NAME:-word}``."""

    name: str
    default: Word | None = None


@dataclass(frozen=True, slots=True)
class Substitution:
    """``$(...)``."""

    body: Node


@dataclass(frozen=True, slots=True)
class Opaque:
    """An expansion whose value only a shell knows."""


Part = str | Variable | Substitution | Opaque


class Word(NamedTuple):
    """One word: its parts joined."""

    parts: tuple[Part, ...]

    @property
    def literal(self) -> str | None:
        """The word where it holds no expansion, else None."""
        return "".join(map(str, self.parts)) if all(isinstance(part, str) for part in self.parts) else None


@dataclass(frozen=True, slots=True)
class Assignment:
    """``NAME=word``; no value for ``export NAME`` alone and for arrays."""

    name: str
    value: Word | None


@dataclass(frozen=True, slots=True)
class Redirect:
    """``N>word``: output of descriptor 1 (2 for errors alone) to a file."""

    target: Word
    append: bool
    errors_only: bool


@dataclass(frozen=True)
class Simple:
    """A command, or assignments alone where there are no words."""

    line: int
    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...]
    redirects: tuple[Redirect, ...]
    stdin: Word | None
    """The text of a here-document or here-string."""
    source: str

    @cached_property
    def literals(self) -> tuple[str, ...] | None:
        """Its words, if none of them holds an expansion."""
        words = [word.literal for word in self.words]
        known = tuple(word for word in words if word is not None)
        return known if len(known) == len(words) else None

    @cached_property
    def substitutions(self) -> tuple[Node, ...]:
        """The bodies of ``$(...)`` in its words and in what it assigns."""
        words = (*self.words, *(one.value for one in self.assignments if one.value is not None))
        return tuple(part.body for word in words for part in word.parts if isinstance(part, Substitution))


@dataclass(frozen=True, slots=True)
class Sequence:
    """Commands one after the other."""

    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """``a | b``."""

    body: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class AndOr:
    """``left && right`` or ``left || right``."""

    left: Node
    right: Node
    operator: Literal["&&", "||"]
    line: int


@dataclass(frozen=True, slots=True)
class Not:
    """``! body``."""

    body: Node


@dataclass(frozen=True, slots=True)
class If:
    """Conditions with what follows each, and the else branch (empty where there is none)."""

    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Loop:
    """for, while, until, select: runs its condition and body any number of times."""

    condition: Node
    body: Node
    endless: bool
    """``while true``: left by break alone."""


@dataclass(frozen=True, slots=True)
class Case:
    """The branches of which at most one runs; ``complete`` where one of them is ``*``."""

    branches: tuple[Node, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class Group:
    """``{ ...; }``, ``( ... )`` with ``subshell``, or a compound command with redirects."""

    body: Node
    redirects: tuple[Redirect, ...]
    subshell: bool


@dataclass(frozen=True, slots=True)
class Background:
    """``body &``."""

    body: Node


@dataclass(frozen=True, slots=True)
class Function:
    """A definition."""

    name: str
    body: Node


@dataclass(frozen=True, slots=True)
class Compare:
    """``left -eq right`` and its like; ``operator`` in the spelling of ``[``."""

    operator: str
    left: Word
    right: Word


@dataclass(frozen=True, slots=True)
class Probe:
    """``-f word``, ``-z word`` and their like."""

    operator: str
    word: Word


@dataclass(frozen=True, slots=True)
class Test:
    """``[ ... ]``, ``[[ ... ]]`` or ``(( ... ))``; no condition where only a shell knows."""

    condition: Compare | Probe | None
    negated: bool
    line: int


Node = Simple | Sequence | Pipeline | AndOr | Not | If | Loop | Case | Group | Background | Function | Test


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes right below one, those inside its words excepted."""
    match node:
        case Sequence(body=body) | Pipeline(body=body) | Case(branches=body):
            yield from body
        case AndOr(left=left, right=right):
            yield left
            yield right
        case If(branches=branches, otherwise=otherwise):
            for condition, then in branches:
                yield condition
                yield then
            yield otherwise
        case Loop(condition=condition, body=body):
            yield condition
            yield body
        case Not(body=body) | Group(body=body) | Background(body=body) | Function(body=body):
            yield body
        case _:
            return


def simple_commands(node: Node) -> Iterator[Simple]:
    """Yield every simple command below a node, those inside ``$(...)`` too, in the order of the text."""
    pending = [node]
    while pending:
        node = pending.pop()
        if isinstance(node, Simple):
            yield node
            pending += reversed(node.substitutions)
        else:
            pending += reversed(tuple(children(node)))


def attach(node: Node, redirects: tuple[Redirect, ...], stdin: Word | None) -> Node:
    """Give redirects to the command that the shell gives them to."""
    match node:
        case Simple():
            return replace(node, redirects=(*node.redirects, *redirects), stdin=stdin or node.stdin)
        case Pipeline(body=body):
            # A here-document feeds the first command, everything else stands behind the l
            last = attach(body[-1], redirects, stdin)
            return replace(node, body=(*body[:-1], last))
        case AndOr(right=right):
            return replace(node, right=attach(right, redirects, stdin))
        case Not(body=inner):
            return Not(attach(inner, redirects, stdin))
        case _ if redirects:
            return Group(node, redirects, subshell=False)
        case _:
            return node


def join(left: Node, operator: str, right: Node, line: int) -> Node:
    """Return what ``left | right``, ``left && right`` or ``left || right`` is."""
    if operator == "|":
        return Pipeline((*left.body, right) if isinstance(left, Pipeline) else (left, right), line)
    return AndOr(left, right, "&&" if operator == "&&" else "||", line)
