r"""The patterns of ``${NAME#glob}`` and its like: ``?`` is one character, ``*`` any number, ``\?`` is ``?`` itself.

No regular expression of Python's: its engine tries every way to share a text among many stars, and the patterns are
those of hostile files. Here the places that can be reached are bits of one number, a step for each part of a pattern.
"""

from __future__ import annotations

from collections.abc import Sequence

MAX_CHARS = 4096
"""Of a value or a pattern."""

_ANY, _STAR = object(), object()


class GlobError(Exception):
    """A pattern that BuildKit refuses, or that is too long: one line."""


def without_prefix(value: str, pattern: str, longest: bool) -> str:
    """Return a value without the shortest or longest beginning that matches. Raises GlobError."""
    ends = _ends(_text(value), _parsed(pattern), 0)
    if not ends:
        return value
    return value[ends.bit_length() - 1 if longest else _lowest(ends) :]


def without_suffix(value: str, pattern: str, longest: bool) -> str:
    """Return a value without the shortest or longest end that matches. Raises GlobError."""
    backwards = _Text(_text(value).chars[::-1])
    ends = _ends(backwards, _parsed(pattern)[::-1], 0)
    if not ends:
        return value
    return value[: len(value) - (ends.bit_length() - 1 if longest else _lowest(ends))]


def replaced(value: str, pattern: str, text: str, everywhere: bool) -> str:
    """Return a value with the first match, or all, replaced: each the leftmost, and there the longest.

    Raises GlobError.
    """
    if len(text) > MAX_CHARS:
        raise GlobError(f"a replacement of more than {MAX_CHARS} characters")
    source, parts = _text(value), _parsed(pattern)
    starts = _starts(source, parts)
    out, done, begin = "", 0, 0
    while starts >> begin:
        begin += _lowest(starts >> begin)
        end = _ends(source, parts, begin).bit_length() - 1
        # Where a match ended, none of nothing begins.
        if end > begin or begin == 0 or begin > done:
            out += value[done:begin] + text
            done = end
            if not everywhere:
                break
        begin = max(end, begin + 1)
    return out + value[done:]


class _Text:
    def __init__(self, chars: str) -> None:
        self.chars = chars
        self.all = (1 << len(chars) + 1) - 1
        self._places: dict[str, int] = {}

    def places(self, char: str) -> int:
        """Return the bits of where a character stands."""
        if char not in self._places:
            self._places[char] = sum(1 << number for number, other in enumerate(self.chars) if other == char)
        return self._places[char]


def _text(value: str) -> _Text:
    if len(value) > MAX_CHARS:
        raise GlobError(f"a value of more than {MAX_CHARS} characters is not searched for a pattern")
    return _Text(value)


def _parsed(pattern: str) -> Sequence[object]:
    if len(pattern) > MAX_CHARS:
        raise GlobError(f"a pattern of more than {MAX_CHARS} characters")
    parts: list[object] = []
    chars = iter(pattern)
    for char in chars:
        if char == "\\":
            # BuildKit lets nothing else be escaped, and keeps a brace and a slash from ending the pattern.
            escaped = next(chars, "")
            if not escaped or escaped not in "*?\\}/":
                raise GlobError(f"invalid escape in the pattern {pattern[:100]!r}")
            parts.append(escaped)
        elif char == "*":
            if not parts or parts[-1] is not _STAR:
                parts.append(_STAR)
        else:
            parts.append(_ANY if char == "?" else char)
    return parts


def _ends(text: _Text, parts: Sequence[object], start: int) -> int:
    """Return the bits of all places where a match that begins at ``start`` may end."""
    reached = 1 << start
    for part in parts:
        if part is _STAR:
            reached = text.all >> _lowest(reached) << _lowest(reached)
        else:
            reached = (reached & (text.all >> 1 if part is _ANY else text.places(str(part)))) << 1
        if not reached:
            break
    return reached


def _starts(text: _Text, parts: Sequence[object]) -> int:
    """Return the bits of all places where a match may begin."""
    reached = text.all
    for part in reversed(parts):
        if part is _STAR:
            reached = (1 << reached.bit_length()) - 1
        else:
            reached = reached >> 1 & (text.all >> 1 if part is _ANY else text.places(str(part)))
    return reached


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
