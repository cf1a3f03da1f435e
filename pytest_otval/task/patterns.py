"""File name patterns: Go's ``filepath.Match``, by which COPY finds its sources, and those of ``.dockerignore``.

The patterns are those of hostile files, and Python's regular expressions try every way to share a path among several
stars. So all stars of a component but the last take the first place that fits and never another (``(?>...)``), which
for a pattern of this kind finds the same, and so do all ``**`` but the last with what stands up to the next.
"""

from __future__ import annotations

import re

_LITERAL_END = re.compile(r"\*\*([^/*?\[\]\\][^*?\[\]\\]*)")
_MAX_ODD_STARS = 4


def copy_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern of ``filepath.Match`` as an expression for whole paths. Raises ValueError where it is malformed.

    https://pkg.go.dev/path/filepath#Match
    """
    return re.compile("/".join(_component(part) for part in pattern.split("/")), re.DOTALL)


def ignore_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern of ``.dockerignore`` as an expression for whole paths. Raises ValueError where it is malformed.

    ``**`` is any number of folders. See https://docs.docker.com/build/concepts/context/#syntax and patternmatcher.go of
    github.com/moby/patternmatcher.
    """
    end = _LITERAL_END.fullmatch(pattern)
    if end is not None:
        # Any path that ends so: ``**.pyc`` is every file of that kind.
        return re.compile(rf".*{re.escape(end[1])}", re.DOTALL)
    parts = pattern.split("/")
    if any("**" in part and part != "**" for part in parts):
        return _odd(pattern)
    regex = ""
    first, *others = _split(parts)
    regex += "".join(f"{_component(part)}/" for part in first) if others else "/".join(map(_component, first))
    for number, segment in enumerate(others, start=1):
        inside = "/".join(_component(part) for part in segment)
        if number < len(others):
            regex += rf"(?>(?:.*?/)??{inside + '/' if inside else ''})"
        else:
            regex += rf"(?:.*/)?{inside}" if inside else ".*"
    return re.compile(regex, re.DOTALL)


def _split(parts: list[str]) -> list[list[str]]:
    """Split at each ``**``."""
    segments: list[list[str]] = [[]]
    for part in parts:
        if part == "**":
            segments.append([])
        else:
            segments[-1].append(part)
    return segments


def _odd(pattern: str) -> re.Pattern[str]:
    """``a**b``, which nobody means."""
    if pattern.count("*") > _MAX_ODD_STARS:
        raise ValueError(f"too many stars in {pattern[:200]!r}")
    pieces = re.split(r"(\*\*/?)", pattern)
    regex = ""
    for number, piece in enumerate(pieces):
        if number % 2 == 0:
            regex += "/".join(_component(part) for part in piece.split("/"))
        else:
            regex += "(?:.*/)?" if any(pieces[number + 1 :]) else ".*"
    return re.compile(regex, re.DOTALL)


def _component(pattern: str) -> str:
    """Translate what stands between two slashes."""
    regex, fixed, star = "", "", False
    position = 0
    while position < len(pattern):
        char = pattern[position]
        position += 1
        if char == "*":
            regex += rf"(?>[^/]*?{fixed})" if star and fixed else fixed
            fixed, star = "", True
        elif char == "?":
            fixed += "[^/]"
        elif char == "[":
            part, position = _character_class(pattern, position)
            fixed += part
        elif char == "\\":
            if position == len(pattern):
                raise ValueError(f"pattern {pattern!r} ends with a backslash")
            fixed += re.escape(pattern[position])
            position += 1
        else:
            fixed += re.escape(char)
    return regex + ("[^/]*" if star else "") + fixed


def _character_class(pattern: str, position: int) -> tuple[str, int]:
    """Translate ``[a-z]`` whose ``[`` was read; return the regular expression and the position behind ``]``."""
    negated = pattern[position : position + 1] == "^"
    position += negated
    ranges: list[tuple[str, str]] = []
    while pattern[position : position + 1] != "]" or not ranges:
        low, position = _class_bound(pattern, position)
        high = low
        if pattern[position : position + 1] == "-":
            high, position = _class_bound(pattern, position + 1)
        ranges.append((low, high))
    # As in Go, one that ends before it begins has no characters.
    inside = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in ranges if low <= high)
    if not inside:
        return r"[\s\S]" if negated else "(?!)", position + 1
    return f"[{'^' if negated else ''}{inside}]", position + 1


def _class_bound(pattern: str, position: int) -> tuple[str, int]:
    """Read one end of a range; ``-`` and ``]`` must be escaped to be one."""
    escaped = pattern[position : position + 1] == "\\"
    char = pattern[position + escaped : position + escaped + 1]
    if not char or (not escaped and char in "-]"):
        raise ValueError(f"malformed pattern {pattern!r}")
    return char, position + escaped + 1
