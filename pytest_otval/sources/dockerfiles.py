"""Edits of a Dockerfile by its instructions and by the commands of its RUNs; all else stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from tree_sitter import Node as Syntax

from pytest_otval.harden.tree import Command, Edits, commands
from pytest_otval.sources.editor import PatchError, TaskEditor
from pytest_otval.task.bash import bash_tree
from pytest_otval.task.dockerfile import Dockerfile, DockerfileError, Instruction, parse_dockerfile

DOCKERFILE = "environment/Dockerfile"
_RUN_HEAD = re.compile(rb"\s*RUN\s+(?:--\S+\s+)*", re.IGNORECASE)
_BLANK = re.compile(rb"[^\n]")


class DockerfileEdit:
    """One Dockerfile of a task. Raises PatchError for what is none."""

    def __init__(self, editor: TaskEditor, path: str = DOCKERFILE) -> None:
        self._editor = editor
        self.path = path
        text = editor.text(path)
        if "\r" in text:
            raise PatchError(f"{path} has carriage returns: put safe_repairs() in front of this patch")
        self.source = text.encode()
        self.file = self._parsed(text)
        self.edits = Edits()
        lines = self.source.split(b"\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in lines)]

    def _parsed(self, text: str) -> Dockerfile:
        try:
            file = parse_dockerfile(text)
        except DockerfileError as error:
            raise PatchError(f"{self.path} is no Dockerfile: {error}") from None
        if file.escape != "\\":
            raise PatchError(f"{self.path} has an escape character of its own")
        return file

    def at(self, line: int) -> Instruction:
        """Return the instruction that a line belongs to. Raises PatchError where there is none."""
        found = (one for one in self.file if one.line <= line <= one.end_line)
        one = next(found, None)
        if one is None:
            raise PatchError(f"{self.path}:{line} is in no instruction")
        return one

    def span(self, instruction: Instruction) -> tuple[int, int]:
        """Return where its lines begin and end, in bytes."""
        return self._starts[instruction.line - 1], min(self._starts[instruction.end_line], len(self.source))

    def remove(self, instruction: Instruction) -> None:
        """Take it out."""
        self.edits.replace(*self.span(instruction), "")

    def rewrite(self, instruction: Instruction, args: Sequence[str]) -> None:
        """Write a COPY or ADD with other arguments, on one line. Raises PatchError for one with a here-document."""
        if instruction.heredocs:
            raise PatchError(f"{self.path}:{instruction.line} has a here-document: change it by hand")
        words = " ".join(args) if instruction.shell_form else json.dumps(list(args))
        self.edits.replace(*self.span(instruction), " ".join([instruction.kind, *instruction.flags, words]) + "\n")

    def insert(self, instruction: Instruction, text: str, *, after: bool = False) -> None:
        """Put lines in front of an instruction, or behind it."""
        start, end = self.span(instruction)
        missing = "\n" if after and not self.source[:end].endswith(b"\n") else ""
        self.edits.insert(end if after else start, f"{missing}{text}\n")

    def shell(self, instruction: Instruction) -> Syntax | None:
        """Return the syntax tree of a RUN, its places those in the Dockerfile; None where no shell reads it."""
        if instruction.kind != "RUN" or not instruction.shell_form:
            return None
        start, end = self.span(instruction)
        body = self.source[start:end]
        if instruction.heredocs and instruction.args[0].startswith("<<"):
            lines = body.splitlines(keepends=True)
            # What stands around a script that is given as a here-document becomes blanks.
            body = b"".join([_BLANK.sub(b" ", lines[0]), *lines[1:-1], _BLANK.sub(b" ", lines[-1])])
        else:
            head = _RUN_HEAD.match(body)
            if head is None:
                return None
            body = b" " * head.end() + body[head.end() :]
            if not instruction.heredocs:
                body = b"".join(map(_continued, body.splitlines(keepends=True)))
        return bash_tree(_BLANK.sub(b" ", self.source[:start]) + body)

    def run_commands(self) -> Iterator[tuple[Instruction, Command]]:
        """Yield each command of each RUN."""
        for instruction in self.file:
            root = self.shell(instruction)
            for command in () if root is None else commands(root):
                yield instruction, replace(command, line=self.line(command.node.start_byte))

    def line(self, at: int) -> int:
        """Return the line on which a byte stands, 1-based. In the tree of a RUN lines of comments are none."""
        return self.source.count(b"\n", 0, at) + 1

    def save(self) -> None:
        """Write what it has become, if it still is a Dockerfile. Raises PatchError."""
        text = self.edits.applied(self.source).decode()
        self._parsed(text)
        self._editor.write(self.path, text)


def _continued(line: bytes) -> bytes:
    """Return a line of a RUN as a shell has to see it: comments and empty lines do not end a command there."""
    stripped = line.strip()
    if stripped and not stripped.startswith(b"#"):
        return line
    return b" " * len(line)
