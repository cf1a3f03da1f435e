"""Tests that a script takes out of the agent's repository though /tests has them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_otval.harden.facts import Facts
from pytest_otval.harden.tree import PLAIN, Command, plain_words

_TEST = re.compile(r"(?:^|/)(?:tests?|test_\w+|\w+_test|conftest|spec)(?:[./]|$)|\.(?:spec|test)\.\w+$")
_GIT_VALUES = frozenset(("-C", "-c", "--git-dir", "--work-tree"))
"""Options of git itself, and of restore, that have a value of their own."""
_RESTORE_VALUES = frozenset(("-s", "--source"))
_BRANCHES = frozenset(("-b", "-B", "--orphan"))


@dataclass(frozen=True, slots=True)
class Restored:
    """What a ``git checkout`` of tests becomes."""

    text: str = ""
    """Copies from /tests; empty where /tests does not have all of it."""
    missing: str = ""
    """The first path that it does not have."""


def restored(command: Command, facts: Facts) -> Restored | None:
    """Return what takes the place of a command; None where it restores no tests."""
    words = command.texts[1:]
    verb = next(iter(plain_words(words, _GIT_VALUES)), "")
    at = words.index(verb) if verb else len(words)
    paths = _paths(verb, words[at + 1 :], facts)
    if not any(_TEST.search(path) for path in paths):
        return None
    copies = []
    for path in paths:
        copy = _copy(path, facts) if at == 0 and PLAIN.fullmatch(path) else None
        if copy is None:
            return Restored(missing=path)
        copies.append(copy)
    return Restored(" && ".join(copies))


def _paths(verb: str, words: list[str], facts: Facts) -> list[str]:
    """Return what ``git checkout [REVISION] [--] PATH...`` or ``git restore PATH...`` writes."""
    end = words.index("--") if "--" in words else len(words)
    options, behind = words[:end], words[end + 1 :]
    if verb == "restore":
        only_index = _has(options, "S", "--staged") and not _has(options, "W", "--worktree")
        return [] if only_index else plain_words(options, _RESTORE_VALUES) + behind
    if verb != "checkout" or _BRANCHES.intersection(options):
        return []
    if end < len(words):
        return behind
    plain = plain_words(options, frozenset())
    names_file = bool(plain) and facts.file_of(plain[0]) is not None
    return plain if names_file else plain[1:]


def _has(options: list[str], letter: str, name: str) -> bool:
    """Whether an option of restore is among words; what follows ``-s`` in one word is a revision."""
    return any(word == name or re.fullmatch(rf"-(?!s)[A-Za-z]*{letter}[A-Za-z]*", word) for word in options)


def _copy(path: str, facts: Facts) -> str | None:
    plain = path.removeprefix("./").rstrip("/")
    if any(name.startswith(f"{plain}/") for name in facts.tests):
        return f"rm -rf {plain} && cp -r /tests/{plain} {plain}"
    if "." not in plain.rsplit("/", 1)[-1]:
        return None
    name = facts.file_of(plain)
    return None if name is None or not PLAIN.fullmatch(name) else f"cp /tests/{name} {plain}"
