"""Test ids that stand in lists of expected results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_CUT = re.compile(r"\S*\.py(?:::\w+)+\[")
_MAX_DEPTH = 20


def cut_ids(name: str, text: str) -> Iterator[tuple[int | None, str]]:
    """Yield ids with parameters that end before their closing bracket: pytest's always end with it."""
    if "::" not in text or "[" not in text:
        return
    if name.endswith(".json"):
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            return
        for value in _strings(data, 0):
            if _CUT.match(value) and not value.rstrip().endswith("]") and "]" not in value:
                yield _line_of(text, value), value
    else:
        for number, line in enumerate(text.splitlines(), 1):
            value = line.strip().strip("\"',- ")
            if _CUT.match(value) and "]" not in value:
                yield number, value


def _strings(data: Any, depth: int) -> Iterator[str]:
    """Yield every text of a JSON value; lists that are written as a text are read as well."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(data, dict):
        for key, value in data.items():
            yield key
            yield from _strings(value, depth + 1)
    elif isinstance(data, list):
        for value in data:
            yield from _strings(value, depth + 1)
    elif isinstance(data, str):
        inner: Any = None
        if data[:1] == "[" and "::" in data:
            try:
                inner = json.loads(data)
            except (ValueError, RecursionError):
                inner = None
        if isinstance(inner, list):
            yield from _strings(inner, depth + 1)
        else:
            yield data


def _line_of(text: str, value: str) -> int | None:
    position = text.find(json.dumps(value)[1:-1])
    return None if position < 0 else text.count("\n", 0, position) + 1
