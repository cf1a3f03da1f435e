"""A Dockerfile as a list of instructions, read by BuildKit's own parser.

Knows nothing of images: variables are not expanded, and an instruction that we cannot build is still an instruction.
What is refused here is what ``docker build`` would refuse before it runs anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_otval.task.buildkit import buildkit
from pytest_otval.task.dockerfile_rules import fault
from pytest_otval.task.reading import NotReadableError, read_regular

MAX_BYTES = 1 << 20
"""A longer Dockerfile is refused; the longest seen in practice has 60 KiB."""

_LINE_IN_MESSAGE = re.compile(r"\bline (\d+)")
_DIRECTIVE = re.compile(r"#\s*([A-Za-z][A-Za-z0-9]*)\s*=\s*(.+?)\s*")
_MAX_LINES_SEARCHED = 2000
_SPACED_HEREDOC = re.compile(r"(?<!<)(<<-?)[ \t]+(?=(['\"]?)([\w.]+)\2(?!\S))")
_MAX_SPACED = 50
"""Heredocs of a Dockerfile that may have a blank in front of their name; each costs a parse of the whole."""


class DockerfileError(Exception):
    """The Dockerfile cannot be read: one line, without the path."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message


@dataclass(frozen=True, slots=True)
class Heredoc:
    """The body of one ``<<NAME`` of an instruction."""

    name: str
    content: str
    """With leading tabs already cut where it was ``<<-NAME``."""
    expand: bool
    """False for ``<<'NAME'``: variables stand for themselves."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction."""

    kind: str
    """Upper case: ``RUN``."""
    line: int
    """First line, 1-based."""
    end_line: int
    flags: tuple[str, ...]
    """``--name=value`` words before the arguments."""
    args: tuple[str, ...]
    """Words as written, with their quotes. For ENV and LABEL names and values in turn; for the shell form of RUN, CMD
    and ENTRYPOINT one text; for HEALTHCHECK and ONBUILD the inner instruction's arguments too."""
    shell_form: bool
    """False where the arguments are a JSON list."""
    original: str
    heredocs: tuple[Heredoc, ...] = ()
    inner: str = ""
    """ONBUILD: the kind of the instruction it defers."""

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Names and values of ENV and LABEL."""
        return tuple(zip(self.args[::2], self.args[1::2], strict=True))


@dataclass(frozen=True, slots=True)
class Dockerfile:
    """A parsed Dockerfile."""

    instructions: tuple[Instruction, ...]
    escape: str = "\\"
    """The escape character, which ``# escape=`` may change to a backtick."""

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)


def parse_dockerfile(path_or_text: Path | str) -> Dockerfile:
    """Return the Dockerfile at a path, or in a text.

    Raises DockerfileError for what is no Dockerfile: a link or another file that is not regular, not UTF-8, longer
    than ``MAX_BYTES``, a syntax error, an unknown instruction, a missing argument. A link is never followed.
    """
    text = _read(path_or_text) if isinstance(path_or_text, Path) else path_or_text
    if "\0" in text:
        raise DockerfileError(text[: text.index("\0")].count("\n") + 1, "a NUL character")
    try:
        commands = _commands(text)
    except buildkit().GoParseError as error:
        message = " ".join(str(error).split())
        raise DockerfileError(_line_of(text, str(error)), message) from None
    instructions = tuple(_instruction(command) for command in commands)
    for instruction in instructions:
        found = fault(instruction)
        if found is not None:
            raise DockerfileError(instruction.line, found)
    first = next((item for item in instructions if item.kind != "ARG"), None)
    if first is None or first.kind != "FROM":
        line = 1 if first is None else first.line
        raise DockerfileError(line, "no FROM" if first is None else f"{first.kind} before the first FROM")
    return Dockerfile(instructions, _escape(text))


def _read(path: Path) -> str:
    try:
        data = read_regular(path, MAX_BYTES)
    except FileNotFoundError:
        raise DockerfileError(1, "there is no such file") from None
    except NotReadableError as error:
        raise DockerfileError(1, str(error)) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DockerfileError(data[: error.start].count(b"\n") + 1, "not UTF-8") from None


def _commands(text: str) -> Any:
    """Parse, with ``<< NAME`` read as ``<<NAME``: BuildKit does so since 0.22, the parser at hand is older."""
    commands = buildkit().parse_string(text)
    index = tries = 0
    while index < len(commands) and tries < _MAX_SPACED:
        closer = _without_blanks(text, commands[index])
        if closer is not None:
            tries += 1
            again = buildkit().parse_string(closer)
            if again[index].heredocs:
                text, commands = closer, again
        index += 1
    return commands


def _without_blanks(text: str, command: Any) -> str | None:
    """Return a Dockerfile without the blanks in an instruction's ``<< NAME``, or None where it has no such heredoc."""
    if command.heredocs or command.json or (command.cmd or "").upper() not in ("RUN", "COPY", "ADD"):
        return None
    if not _SPACED_HEREDOC.search(command.original):
        return None
    lines = text.split("\n")
    own = slice(command.start_line - 1, command.end_line)
    names = {found[3] for line in lines[own] for found in _SPACED_HEREDOC.finditer(line)}
    if names.isdisjoint(line.strip("\t\r") for line in lines[own.stop :]):
        return None
    lines[own] = [_SPACED_HEREDOC.sub(r"\1", line) for line in lines[own]]
    return "\n".join(lines)


def _instruction(command: Any) -> Instruction:
    args = tuple(str(word) for word in command.value)
    return Instruction(
        kind=(command.cmd or "").upper(),  # None for a line of nothing but the escape character
        line=command.start_line,
        end_line=command.end_line,
        flags=tuple(command.flags),
        args=args,
        shell_form=not command.json,
        original=(command.original or "").rstrip("\n"),
        heredocs=tuple(_heredoc(item, " ".join(args)) for item in command.heredocs),
        inner=(command.sub_cmd or "").upper(),
    )


def _heredoc(item: Any, words: str) -> Heredoc:
    """The parser hands over name and content; dash and quotes stand in the words of the instruction."""
    name = re.escape(item.name)
    found = re.search(rf"<<(-?)(['\"]?){name}\2(?!\w)", words)
    dash, quote = found.groups() if found else ("", "")
    content = re.sub(r"^\t+", "", item.content, flags=re.MULTILINE) if dash else item.content
    return Heredoc(item.name, content, expand=not quote)


def _line_of(text: str, message: str) -> int:
    """The parser's messages mostly lack the line: it is the end of the shortest text from which on each is refused."""
    told = _LINE_IN_MESSAGE.search(message)
    if told:
        return int(told.group(1))
    lines = text.splitlines(keepends=True)
    if len(lines) > _MAX_LINES_SEARCHED:
        return 1
    found = max(1, len(lines))
    for count in range(len(lines) - 1, 0, -1):
        try:
            buildkit().parse_string("".join(lines[:count]))
        except buildkit().GoParseError as error:
            if str(error) == message:
                found = count
                continue
        break
    return found


def _escape(text: str) -> str:
    """Parser directives stand before anything else, comments included."""
    for line in text.splitlines():
        directive = _DIRECTIVE.fullmatch(line.strip())
        if directive is None:
            break
        if directive.group(1).lower() == "escape":
            return directive.group(2)[0]
    return "\\"
