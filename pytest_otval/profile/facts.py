"""``[[facts]]``: where each value of a profile is from, and when: what is known can be told from what is hoped.

A fact names keys as TOML writes them (``storage.home.files_hard``, ``mirrors."docker.io"``). The key of a table speaks
for all in it that no longer key speaks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import tomli
from pydantic import AfterValidator, Field

from pytest_otval.profile.section import Line, Section

Key = tuple[str, ...]
"""The parts of a dotted key."""

_ABOUT_THE_FILE = {("facts",), ("extends",)}

_DATE = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?")


def key_of(text: str) -> Key:
    """Return the parts of a dotted TOML key. Raises ValueError for what is none."""
    try:
        value: object = tomli.loads(f"{text} = 0") if "\n" not in text and "=" not in text else None
    except tomli.TOMLDecodeError:
        value = None
    parts: list[str] = []
    while isinstance(value, dict) and len(value) == 1:
        ((part, value),) = value.items()
        parts.append(part)
    if value != 0 or not parts:
        raise ValueError(f"{text!r} is no key as storage.home.files_hard")
    return tuple(parts)


def _key(text: str) -> str:
    key_of(text)
    return text


def _date(text: str) -> str:
    if not _DATE.fullmatch(text):
        raise ValueError(f"{text!r} is no date as 2026-10 or 2026-10-31")
    return text


class Fact(Section):
    """One ``[[facts]]``."""

    keys: Annotated[tuple[Annotated[str, AfterValidator(_key)], ...], Field(min_length=1)]
    """What it speaks for: keys of this file."""
    source: Line
    """Who said it or what measured it, one line."""
    date: Annotated[str, AfterValidator(_date)]
    """When that was, ``YYYY-MM`` or ``YYYY-MM-DD``."""
    verified: bool
    """Whether somebody saw it at the site; False for what stands in a document or is assumed."""


def values_of(table: Mapping[str, object], above: Key = ()) -> Iterator[Key]:
    """Yield the keys of all values of a TOML document that are about the site; an array is one value."""
    for name, value in table.items():
        key = (*above, name)
        if isinstance(value, Mapping) and value:
            yield from values_of(value, key)
        elif key not in _ABOUT_THE_FILE:
            yield key


def fact_for(facts: Sequence[Fact], key: Key) -> Fact | None:
    """Return the fact that speaks for a value: the one with the longest key above it or at it."""
    by_key = {key_of(text): fact for fact in facts for text in fact.keys}
    return next((by_key[key[:size]] for size in range(len(key), 0, -1) if key[:size] in by_key), None)


def check_facts(facts: Sequence[Fact], document: Mapping[str, object]) -> None:
    """Raise ValueError where a fact speaks for a key that the document does not have, or two for the same."""
    known = {key[:size] for key in values_of(document) for size in range(1, len(key) + 1)}
    seen: set[Key] = set()
    for text in (text for fact in facts for text in fact.keys):
        key = key_of(text)
        if key not in known:
            raise ValueError(f"[[facts]] names {text!r}, which this file does not have")
        if key in seen:
            raise ValueError(f"[[facts]] names {text!r} twice")
        seen.add(key)
