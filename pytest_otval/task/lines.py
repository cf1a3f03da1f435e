"""On which line of a TOML text each key stands.

Parsers of TOML drop positions, and tomlkit, which keeps the text, is slow and tells none either. This
scanner only looks for keys and array elements; whether the text is valid TOML is tomli's question. On invalid text
it stops early and keeps what it found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from reprlib import repr as short_repr

import tomli

KeyPath = tuple[str | int, ...]

MAX_DEPTH = 64
"""Arrays and inline tables nested deeper are not looked into."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_REST_OF_LINE = re.compile(r"[^\n]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"{3,5}'
    r"|'''[^']*(?:'(?!'')[^']*)*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\n]+")


class KeyLines:
    """The 1-based line of each key path of a TOML text; elements of arrays are indexed by int."""

    def __init__(self, text: str) -> None:
        self._lines: dict[KeyPath, int] = {}
        _Scanner(text, self._lines).scan()

    def __contains__(self, path: KeyPath) -> bool:
        return path in self._lines

    def line(self, path: KeyPath) -> int | None:
        """Return the line of ``path``, else of the nearest table around it, else None."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._lines:
                return self._lines[path[:length]]
        return None


class Lines:
    """Lines of key paths, looked up only once somebody asks: most task.toml have no finding."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._found: KeyLines | None = None

    def of(self, path: KeyPath) -> int | None:
        """Return the line of a key path, or of the nearest table around it."""
        if self._found is None:
            self._found = KeyLines(self._source)
        return self._found.line(path)


def dotted(path: KeyPath) -> str:
    """Return a key path as a user reads it: ``steps[0].verifier.user``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + (part if _BARE_KEY.fullmatch(part) and len(part) < 64 else short_repr(part))
    return text


class _StopScanning(Exception):
    """The text is not TOML from here on."""


class _Scanner:
    def __init__(self, text: str, lines: dict[KeyPath, int]) -> None:
        self.text = text
        self.lines = lines
        self.at = 0
        self.line = 1
        self.table_arrays: dict[KeyPath, int] = {}
        """Index of the last element of each array of tables, by the array's path."""

    def scan(self) -> None:
        table: KeyPath = ()
        try:
            while True:
                self.skip(_BLANK)
                if self.at == len(self.text):
                    return
                if self.text.startswith("[", self.at):
                    table = self.header()
                else:
                    self.pair(table, 0)
                self.skip(_REST_OF_LINE)
        except _StopScanning:
            return

    def skip(self, pattern: re.Pattern[str]) -> str:
        """Pass over what ``pattern`` matches here and return it, maybe the empty string."""
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        found = match[0]
        self.at = match.end()
        self.line += found.count("\n")
        return found

    def take(self, mark: str) -> bool:
        if not self.text.startswith(mark, self.at):
            return False
        self.at += len(mark)
        return True

    def record(self, path: KeyPath) -> None:
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], self.line)

    def header(self) -> KeyPath:
        is_array = self.take("[[")
        if not is_array:
            self.take("[")
        *above, last = self.key()
        path: KeyPath = ()
        for part in above:
            path = self.last_element((*path, part))
        path = (*path, last)
        if is_array:
            self.table_arrays[path] = self.table_arrays.get(path, -1) + 1
            path = self.last_element(path)
        else:
            path = self.last_element(path)
        self.record(path)
        return path

    def last_element(self, path: KeyPath) -> KeyPath:
        return (*path, self.table_arrays[path]) if path in self.table_arrays else path

    def key(self) -> Iterator[str]:
        while True:
            self.skip(_SPACE)
            if plain := self.skip(_BARE_KEY):
                yield plain
            elif quoted := self.skip(_STRING):
                yield _unquoted(quoted)
            else:
                raise _StopScanning
            self.skip(_SPACE)
            if not self.take("."):
                return

    def pair(self, table: KeyPath, depth: int) -> None:
        line = self.line
        path = (*table, *self.key())
        if not self.take("="):
            raise _StopScanning
        for length in range(len(table) + 1, len(path) + 1):
            self.lines.setdefault(path[:length], line)
        self.skip(_SPACE)
        self.value(path, depth)

    def value(self, path: KeyPath, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise _StopScanning
        if self.take("["):
            self.array(path, depth)
        elif self.take("{"):
            self.inline_table(path, depth)
        elif not self.skip(_STRING) and not self.skip(_SCALAR):
            raise _StopScanning

    def array(self, path: KeyPath, depth: int) -> None:
        index = 0
        while True:
            self.skip(_BLANK)
            if self.take("]"):
                return
            element = (*path, index)
            self.record(element)
            self.value(element, depth + 1)
            self.skip(_BLANK)
            if not self.take(",") and not self.text.startswith("]", self.at):
                raise _StopScanning
            index += 1

    def inline_table(self, path: KeyPath, depth: int) -> None:
        while True:
            self.skip(_BLANK)
            if self.take("}"):
                return
            self.pair(path, depth + 1)
            self.skip(_BLANK)
            if not self.take(",") and not self.text.startswith("}", self.at):
                raise _StopScanning


def _unquoted(key: str) -> str:
    """Return what a quoted key says: escapes are tomli's business."""
    try:
        return next(iter(tomli.loads(f"{key} = 0")))
    except tomli.TOMLDecodeError:
        raise _StopScanning from None
