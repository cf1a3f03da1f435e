"""Variables in a Dockerfile's words, by the rules of Dockerfiles (not of a shell).

``$NAME``, ``${NAME}``, ``${NAME:-word}``, ``${NAME-word}``, ``${NAME:+word}``, ``${NAME+word}``, ``${NAME:?word}``,
``${NAME?word}``, ``${NAME#glob}``, ``${NAME##glob}``, ``${NAME%glob}``, ``${NAME%%glob}``, ``${NAME/glob/text}``,
``${NAME//glob/text}``; quotes are removed, single quotes and the escape character protect. See
https://docs.docker.com/reference/dockerfile/#environment-replacement and BuildKit's frontend/dockerfile/shell/lex.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_otval.images.globs import GlobError, replaced, without_prefix, without_suffix

MAX_CHARS = 1 << 20
"""``ENV A=$A$A`` in each of sixty lines would fill every memory; Linux itself takes 128 KiB a variable."""

_MAX_DEPTH = 50
"""How deep ``${A:-${B:-...}}`` may go; the reader recurses."""
_SPECIAL = "@*#?-$!"


class ExpansionError(Exception):
    """A word that BuildKit refuses: one line."""


def expand(word: str, variables: Mapping[str, str], escape: str = "\\", keep_quotes: bool = False) -> str:
    """Return ``word`` with its variables replaced and its quotes removed.

    ``keep_quotes`` is for the bodies of here-documents, where quotes are text. Unset variables are empty.
    Raises ExpansionError.
    """
    return _Reader(word, variables, escape, keep_quotes).until("")


class _Reader:
    def __init__(self, text: str, variables: Mapping[str, str], escape: str, keep_quotes: bool) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._room = MAX_CHARS
        self._variables = variables
        self._escape = escape
        self._keep_quotes = keep_quotes
        self._keep_escapes = False
        """In patterns, where an escape may mean that a star is a star."""

    def until(self, end: str) -> str:
        """Read to the character ``end``, which is eaten, or with "" to the end of the text."""
        out: list[str] = []
        while char := self._next():
            if char == end:
                return "".join(out)
            if char == "'" and not self._keep_quotes:
                out.append(self._single_quoted())
            elif char == '"' and not self._keep_quotes:
                out.append(self._double_quoted())
            elif char == "$":
                out.append(self._variable())
            elif char == self._escape:
                out.append((char if self._keep_escapes else "") + self._next())
            else:
                out.append(char)
        if end:
            raise ExpansionError(f"no closing {end} in {self._text[:200]!r}")
        return "".join(out)

    def _next(self) -> str:
        char = self._text[self._at : self._at + 1]
        self._at += 1
        return char

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _single_quoted(self) -> str:
        end = self._text.find("'", self._at)
        if end < 0:
            raise ExpansionError(f"no closing ' in {self._text[:200]!r}")
        start, self._at = self._at, end + 1
        return self._text[start:end]

    def _double_quoted(self) -> str:
        out: list[str] = []
        while char := self._next():
            if char == '"':
                return "".join(out)
            if char == "$":
                out.append(self._variable())
            elif char == self._escape and (escaped := self._peek()) in ('"', "$", self._escape) and escaped:
                out.append((char if self._keep_escapes else "") + self._next())
            else:
                out.append(char)
        raise ExpansionError(f'no closing " in {self._text[:200]!r}')

    def _variable(self) -> str:
        """Read what stands behind a dollar sign."""
        if self._peek() != "{":
            name = self._name()
            return self._counted(self._variables.get(name, "")) if name else "$"
        self._next()
        if self._peek() in ("{", "}", ":", ""):
            raise ExpansionError(f"bad substitution in {self._text[:200]!r}")
        return self._counted(self._modified(self._name()))

    def _name(self) -> str:
        """Read a name, a number, or one of the signs that a shell gives a meaning; "" for nothing of these."""
        first = self._peek()
        if first and first in _SPECIAL:
            return self._next()
        start = self._at
        digits_alone = first.isdecimal()
        while (char := self._peek()) and (char.isdecimal() or (not digits_alone and (char.isalpha() or char == "_"))):
            self._at += 1
        return self._text[start : self._at]

    def _counted(self, value: str) -> str:
        self._room -= len(value)
        if self._room < 0:
            raise ExpansionError(f"longer than {MAX_CHARS >> 20} MiB with its variables replaced")
        return value

    def _modified(self, name: str) -> str:
        """Read the rest of ``${NAME...}``."""
        value = self._variables.get(name)
        operator = self._next()
        if operator == "}":
            return value or ""
        if operator in ("#", "%"):
            return self._trimmed(value or "", operator)
        if operator == "/":
            return self._replaced(value or "")
        if operator == ":":
            value = value or None
            operator = self._next()
        if operator not in ("-", "+", "?") or not operator:
            raise ExpansionError(f"unsupported modifier in {self._text[:200]!r}")
        word = self._word("}")
        if operator == "+":
            return "" if value is None else word
        if value is None and operator == "?":
            raise ExpansionError(f"{name}: {word or 'is not allowed to be unset or empty'}")
        return word if value is None else value

    def _word(self, end: str, keep_escapes: bool = False) -> str:
        if self._depth == _MAX_DEPTH:
            raise ExpansionError("variables nested too deep")
        self._depth += 1
        before, self._keep_escapes = self._keep_escapes, keep_escapes
        word = self.until(end)
        self._keep_escapes = before
        self._depth -= 1
        return word

    def _trimmed(self, value: str, operator: str) -> str:
        pattern = self._word("}", keep_escapes=True)
        longest = pattern.startswith(operator)
        trim = without_prefix if operator == "#" else without_suffix
        try:
            return trim(value, pattern[longest:], longest)
        except GlobError as error:
            raise ExpansionError(str(error)) from None

    def _replaced(self, value: str) -> str:
        everywhere = self._peek() == "/"
        self._at += everywhere
        pattern = self._word("/", keep_escapes=True)
        text = self._word("}", keep_escapes=True)
        try:
            return replaced(value, pattern, text, everywhere)
        except GlobError as error:
            raise ExpansionError(str(error)) from None
