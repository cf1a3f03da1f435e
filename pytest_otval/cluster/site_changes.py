"""What was seen at a site against its profile, and the change of the profile's file that follows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import Array, Table

from pytest_otval.cluster.probes import Probe
from pytest_otval.cluster.site_seen import Seen, Value
from pytest_otval.profile import Profile
from pytest_otval.profile.facts import Key, fact_for, key_of

_SAME = 0.01
"""Sizes that differ by less than this part are written in other units, not different."""


def compare(profile: Profile, seen: Iterable[Seen | Probe]) -> tuple[list[Probe], list[Seen]]:
    """Return a probe for each answer, and those answers that the profile does not have."""
    probes: list[Probe] = []
    changes: list[Seen] = []
    for one in seen:
        if isinstance(one, Probe):
            probes.append(one)
            continue
        said, name = _value(profile, one.key), ".".join(one.key)
        if _same(said, one.value):
            probes.append(Probe("site", name, True, _shown(one.value)))
        else:
            changes.append(one)
            detail = f"{_shown(one.value)} ({one.source}); the profile says {_shown(said)}{_source(profile, one.key)}"
            probes.append(Probe("site", name, False, detail, "see the change below"))
    return probes, changes


def _value(profile: Profile, key: Key) -> Any:
    found: Any = profile
    for part in key:
        found = found.get(part) if hasattr(found, "get") else getattr(found, part)
    return list(found) if isinstance(found, tuple) else found


def _same(said: Any, seen: Value) -> bool:
    if isinstance(seen, float) and isinstance(said, int | float):
        return abs(said - seen) <= _SAME * seen
    if isinstance(seen, list) and isinstance(said, list):
        return sorted(said) == sorted(seen)
    return bool(said == seen)


def _shown(value: Any) -> str:
    return "nothing" if value in (None, "", []) else ", ".join(value) if isinstance(value, list) else str(value)


def _source(profile: Profile, key: Key) -> str:
    fact = fact_for(profile.facts, key)
    return f" ({fact.source}, {fact.date}{'' if fact.verified else ', not verified'})" if fact else ""


def propose(file: Path, changes: Sequence[Seen], source: str, date: str) -> str:
    """Return a unified diff that makes a profile's file say what was seen; empty where that is nothing new."""
    before = file.read_text(encoding="utf-8")
    after = changed(before, changes, source, date) if changes else before
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), str(file), f"{file} (proposed)")
    return "".join(lines)


def changed(text: str, changes: Sequence[Seen], source: str, date: str) -> str:
    """Return a profile's text with what was seen.

    The values get a fact of their own, with ``source`` and ``date`` (``YYYY-MM-DD``); no other names their keys.
    """
    document = tomlkit.parse(text)
    for change in changes:
        table: Any = document
        for part in change.key[:-1]:
            table = table.setdefault(part, tomlkit.table())
        table[change.key[-1]] = change.value
    _replace_facts(document, [change.key for change in changes], source, date)
    return tomlkit.dumps(document)


def _replace_facts(document: tomlkit.TOMLDocument, keys: Sequence[Key], source: str, date: str) -> None:
    facts: Any = document.get("facts", [])
    for fact in facts:
        for text in [text for text in fact["keys"] if key_of(text) in keys]:
            fact["keys"].remove(text)
    # tomlkit has no way to remove one of an array of tables that keeps the others as they are written.
    for number in reversed([number for number, fact in enumerate(facts) if not fact["keys"]]):
        del facts[number]
    new: Table = tomlkit.table()
    new.trivia.indent = "\n"
    new.update({"source": source, "date": date, "verified": True})
    names: Array = tomlkit.array()
    names.extend(_dotted(keys))
    new["keys"] = names.multiline(len(names) > 1)
    if "facts" not in document:
        document["facts"] = tomlkit.aot()
    document["facts"].append(new)


def _dotted(keys: Iterable[Key]) -> Iterator[str]:
    for key in keys:
        yield ".".join(tomlkit.key(part).as_string() for part in key)
