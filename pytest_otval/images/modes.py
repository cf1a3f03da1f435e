"""``--chmod`` of COPY and ADD: octal as ``0755``, or symbolic as ``u=rwX,go=rX``, which no umask changes."""

from __future__ import annotations

import re

_OCTAL = re.compile(r"[0-7]+")
_ACTION = re.compile(r"([-+=])([ugo]|[rwxXst]*)")
_CLAUSE = re.compile(rf"([ugoa]*)((?:{_ACTION.pattern})+)")
_WHO = {"u": 0o4700, "g": 0o2070, "o": 0o1007, "a": 0o7777}
_BITS = {"r": 0o444, "w": 0o222, "x": 0o111, "s": 0o6000, "t": 0o1000}
_SHIFT = {"u": 6, "g": 3, "o": 0}


def parsed_mode(text: str) -> str:
    """Return a mode in the one form in which equal octal modes are equal. Raises ValueError, one line."""
    if _OCTAL.fullmatch(text):
        digits = text.lstrip("0") or "0"
        if len(digits) > 4:
            raise ValueError(f"invalid mode {text[:20]!r}: more than 7777")
        return digits
    if not all(_CLAUSE.fullmatch(clause) for clause in text.split(",")):
        raise ValueError(f"invalid mode {text[:200]!r}: neither octal nor symbolic such as u=rwX,go=rX")
    return text


def changed_mode(mode: str, before: int, is_folder: bool) -> int:
    """Return the permission bits that something gets that has ``before``; ``mode`` is a ``parsed_mode``."""
    if _OCTAL.fullmatch(mode):
        return int(mode, 8)
    bits = before
    for clause in mode.split(","):
        found = _CLAUSE.fullmatch(clause)
        assert found is not None, mode
        mask = 0
        for who in found[1] or "a":
            mask |= _WHO[who]
        for operator, letters in _ACTION.findall(found[2]):
            given = _given(letters, bits, before, is_folder) & mask
            if operator == "=":
                bits = bits & ~(mask & ~0o1000) | given
            else:
                bits = bits | given if operator == "+" else bits & ~given
    return bits


def folder_mode(mode: str) -> int:
    """Return the permission bits of a folder that a COPY makes for its destination: an octal mode is for it too."""
    return int(mode, 8) if _OCTAL.fullmatch(mode) else 0o755


def _given(letters: str, bits: int, before: int, is_folder: bool) -> int:
    if letters in _SHIFT:
        return (bits >> _SHIFT[letters] & 7) * 0o111
    given = 0
    for letter in letters:
        if letter != "X":
            given |= _BITS[letter]
        elif is_folder or before & 0o111:
            given |= 0o111
    return given
