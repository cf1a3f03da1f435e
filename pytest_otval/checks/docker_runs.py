"""The commands of a RUN instruction, each with its line, its folder, and whether its failure ends the build."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_otval.checks import shell_ast as ast
from pytest_otval.checks.shell import known_text, parse_shell
from pytest_otval.checks.shell_commands import unwrapped
from pytest_otval.task.dockerfile import Instruction

UNKNOWN = "\0"
"""Stands in words and folders for what only a build knows."""
_RUN_HEAD = re.compile(r"\s*RUN\s+(?:--\S+\s+)*", re.IGNORECASE)
_SHELL_SHEBANG = re.compile(r"#!\s*\S*(?:/env\s+(?:-S\s+)?)?(?:ba|da|a)?sh\b")
_MAX_TEXT = 64 * 1024
"""A longer RUN is not looked into."""
_NOTHING_TO_DO = frozenset(("true", ":", "echo", "printf"))


@dataclass(frozen=True)
class Command:
    """One simple command of a RUN."""

    words: tuple[str, ...]
    """Without wrappers such as ``sudo`` and ``env A=1``; a NUL character for what is not known."""
    line: int
    folder: str
    """Where it runs: absolute, with a NUL character where that is not known."""
    ignored: bool
    """``command || true``: the build goes on where it fails."""
    certain: bool
    """It runs whenever the build gets there: it stands in no branch, loop or function."""
    source: str
    stdin: str

    @cached_property
    def name(self) -> str:
        """The program without its folder; empty where the command only sets variables."""
        return posixpath.basename(self.words[0]) if self.words else ""


@dataclass(frozen=True, slots=True)
class Run:
    """One RUN of the shell form."""

    line: int
    first_line: int
    """Where its text starts: for a here-document, the line below."""
    text: str
    body: ast.Node | None
    """None where the shell grammar does not read it."""
    commands: tuple[Command, ...]


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


def join(folder: str, path: str) -> str:
    """Return a path seen from a folder; a NUL character alone where either is not known."""
    if path.startswith(("~", UNKNOWN)) or (UNKNOWN in folder and not path.startswith("/")):
        return UNKNOWN
    return posixpath.normpath(posixpath.join(folder, path))


def read_run(instruction: Instruction, lines: Sequence[str], folder: str, escape: str) -> Run:
    """Return a RUN of the shell form; ``folder`` is its WORKDIR, ``lines`` those of the Dockerfile."""
    text, first = _script(instruction, lines, escape)
    text = text if len(text) <= _MAX_TEXT else ""
    script = parse_shell(text)
    if script is None:
        return Run(instruction.line, first, text, None, ())
    walk = _Walk(folder, first)
    walk.node(script.body)
    return Run(instruction.line, first, text, script.body, tuple(walk.commands))


def _script(instruction: Instruction, lines: Sequence[str], escape: str) -> tuple[str, int]:
    """Return a RUN's shell text and the line it starts on, with the line breaks of the file where that can be."""
    joined = instruction.args[0]
    if instruction.heredocs and joined.startswith("<<"):
        body = instruction.heredocs[0].content
        return (body if not body.startswith("#!") or _SHELL_SHEBANG.match(body) else ""), instruction.line + 1
    own = list(lines[instruction.line - 1 : instruction.end_line])
    head = _RUN_HEAD.match(own[0]) if own else None
    if head is None or escape != "\\":
        return joined, instruction.line
    own[0] = own[0][head.end() :]
    if not instruction.heredocs:
        # In a Dockerfile a comment or an empty line does not end a continued command; in a shell it would.
        own = ["\\" if not line.strip() or line.lstrip().startswith("#") else line.rstrip() for line in own]
    return "\n".join(own).rstrip("\\\n"), instruction.line


class _Walk:
    """Commands in the order of the text, with the working directory that ``cd`` leaves."""

    def __init__(self, folder: str, line: int) -> None:
        self.folder = folder
        self.line = line
        self.commands: list[Command] = []

    def node(self, node: ast.Node, ignored: bool = False, certain: bool = True) -> None:
        """Take in the commands of a node."""
        match node:
            case ast.Simple():
                self.simple(node, ignored, certain)
            case ast.AndOr(operator="||", left=left, right=right):
                self.node(left, ignored or _does_nothing(right), certain)
                self.node(right, ignored, certain=False)
            case ast.Group(subshell=True, body=body):
                before = self.folder
                self.node(body, ignored, certain)
                self.folder = before
            case ast.If() | ast.Case() | ast.Loop() | ast.Function() | ast.Not() | ast.Background():
                for child in ast.children(node):
                    self.node(child, ignored, certain=False)
            case _:
                for child in ast.children(node):
                    self.node(child, ignored, certain)

    def simple(self, node: ast.Simple, ignored: bool, certain: bool) -> None:
        """Take in a command behind those inside its words."""
        for body in node.substitutions:
            self.node(body, certain=certain)
        words = tuple(unwrapped([known_text(word) for word in node.words]))
        stdin = known_text(node.stdin) if node.stdin is not None else ""
        line = self.line + node.line - 1
        self.commands.append(Command(words, line, self.folder, ignored, certain, node.source, stdin))
        if words[:1] == ("cd",):
            self.folder = join(self.folder, words[1]) if len(words) > 1 else UNKNOWN


def _does_nothing(node: ast.Node) -> bool:
    """Whether a command always succeeds and repairs nothing."""
    while isinstance(node, ast.Group):
        node = node.body
    if isinstance(node, ast.Sequence) and node.body:
        node = node.body[-1]
    if not isinstance(node, ast.Simple) or not node.words:
        return False
    words = [word.literal for word in node.words]
    return words[0] in _NOTHING_TO_DO or words == ["exit", "0"]
