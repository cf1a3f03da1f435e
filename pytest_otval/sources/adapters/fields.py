"""Fields of a record, by their kind. Whatever a record holds, a wrong field is one line that names it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pytest_otval.sources.adapters.base import RefusalError

MAX_TEXT = 16 * 1024 * 1024
"""Characters of one text; longer ones are no patch or statement anybody wrote."""
MAX_ITEMS = 200_000
"""Of a list of test ids."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
"""All but tab, line feed, carriage return and form feed."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def text_of(row: Mapping[str, Any], key: str, *, controls: bool = False) -> str:
    """Return a text that is there and not blank; with ``controls`` it may hold control characters other than NUL.

    Raises RefusalError.
    """
    value = row.get(key)
    if value is None:
        raise RefusalError("wrong-field", f"has no {key}")
    if not isinstance(value, str):
        raise RefusalError("wrong-field", f"{key} is {type(value).__name__} and no text")
    check_text(value, key, controls=controls)
    if not value.strip():
        raise RefusalError("wrong-field", f"{key} is empty")
    return value


def check_text(value: str, what: str, *, controls: bool = False) -> None:
    """Refuse a text that a file should not hold. Raises RefusalError."""
    if len(value) > MAX_TEXT:
        raise RefusalError("too-large", f"{what} has more than {MAX_TEXT} characters")
    if _SURROGATE.search(value):
        raise RefusalError("wrong-field", f"{what} holds half a character, so it is no UTF-8")
    found = _CONTROL.search(value) if not controls else re.search("\0", value)
    if found:
        raise RefusalError("wrong-field", f"{what} holds the control character {found[0]!r}")


def match_of(row: Mapping[str, Any], key: str, pattern: re.Pattern[str], wanted: str) -> str:
    """Return a text that matches entirely. Raises RefusalError."""
    value = text_of(row, key).strip()
    if not pattern.fullmatch(value):
        raise RefusalError("wrong-field", f"{key} is {value[:80]!r} and no {wanted}")
    return value


def texts_of(row: Mapping[str, Any], key: str) -> list[str]:
    """Return a list of texts, also where it is written as JSON. An absent list is empty. Raises RefusalError."""
    value = row.get(key)
    if isinstance(value, str):
        check_text(value, key)
        try:
            value = json.loads(value or "[]")
        except (ValueError, RecursionError):
            raise RefusalError("wrong-field", f"{key} is a text, but no JSON") from None
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise RefusalError("wrong-field", f"{key} is {type(value).__name__} and no list")
    if len(value) > MAX_ITEMS:
        raise RefusalError("too-large", f"{key} has more than {MAX_ITEMS} entries")
    for item in value:
        if not isinstance(item, str):
            raise RefusalError("wrong-field", f"{key} holds {type(item).__name__} and not only texts")
        if not item.isprintable() or len(item) > MAX_TEXT:
            check_text(item, key)
            raise RefusalError("wrong-field", f"{key} holds {item[:80]!r}, which has a character that cannot be shown")
    return list(value)
