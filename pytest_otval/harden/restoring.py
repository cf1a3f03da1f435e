"""Tests that a script takes out of the agent's repository though /tests has them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_otval.harden.facts import Facts
from pytest_otval.harden.tree import Command

_PLAIN = re.compile(r"[\w./+-]+", re.ASCII)
_TEST = re.compile(r"(?:^|/)(?:tests?|test_\w+|\w+_test|conftest|spec)(?:[./]|$)|\.(?:spec|test)\.\w+$")


@dataclass(frozen=True, slots=True)
class Restored:
    """What a ``git checkout`` of tests becomes."""

    text: str = ""
    """Copies from /tests; empty where /tests does not have all of it."""
    missing: str = ""
    """The first path that it does not have."""


def restored(command: Command, facts: Facts) -> Restored | None:
    """Return what takes the place of a command; None where it restores no tests."""
    paths = _paths(command.texts)
    if not paths or not any(_TEST.search(path) for path in paths):
        return None
    copies = []
    for path in paths:
        copy = _copy(path, facts) if _PLAIN.fullmatch(path) else None
        if copy is None:
            return Restored(missing=path)
        copies.append(copy)
    return Restored(" && ".join(copies))


def _paths(texts: list[str]) -> list[str]:
    """Return what ``git checkout [REVISION] -- PATH...`` or ``git restore PATH...`` writes."""
    rest = texts[1:]
    if rest[:1] not in (["checkout"], ["restore"]):
        return []
    if "--" in rest:
        return rest[rest.index("--") + 1 :]
    plain = [word for word in rest[1:] if not word.startswith("-")]
    return plain[1:] if rest[0] == "checkout" else plain


def _copy(path: str, facts: Facts) -> str | None:
    plain = path.removeprefix("./").rstrip("/")
    if any(name.startswith(f"{plain}/") for name in facts.tests):
        return f"rm -rf {plain} && cp -r /tests/{plain} {plain}"
    if "." not in plain.rsplit("/", 1)[-1]:
        return None
    name = facts.file_of(plain)
    return None if name is None or not _PLAIN.fullmatch(name) else f"cp /tests/{name} {plain}"
