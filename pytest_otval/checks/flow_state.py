"""What is known at one point of a test script, and what a file's text means as a reward."""

from __future__ import annotations

import json
import math
import posixpath
from enum import StrEnum
from typing import Literal, NamedTuple

UNKNOWN = "\0"
"""Stands in a value for what only a run can tell."""
NONZERO = "\1"
"""The value of a status of which only that it is not 0 is known."""

REWARD_FILES = {"/logs/verifier/reward.txt": "txt", "/logs/verifier/reward.json": "json"}
_NAMES = {posixpath.basename(path): kind for path, kind in REWARD_FILES.items()}

Target = Literal["txt", "json", "maybe"]


class Reward(StrEnum):
    """What lies at a reward path."""

    NONE = "none"
    ZERO = "zero"
    """A number that is not above 0."""
    POSITIVE = "positive"
    UNKNOWN = "unknown"


class Event(NamedTuple):
    """A place in the script, and what happened there."""

    line: int
    what: str


class State(NamedTuple):
    """One way the script can have got to a point. A tuple: a walk makes tens of them a command."""

    errexit: bool = False
    pipefail: bool = False
    status: str = "0"
    """Of the last command: ``0`` or NONZERO."""
    txt: Reward = Reward.NONE
    json: Reward = Reward.NONE
    variables: tuple[tuple[str, str], ...] = ()
    exit_trap: str = ""
    err_trap: str = ""
    failed: Event | None = None
    """The first test runner that ended with another status than 0."""
    ran: bool = False
    """A test runner ran."""
    certain: bool = True
    """False once a branch was taken that may never be: then nothing is claimed from this way alone."""
    lost: Event | None = None
    """Where the status of a failed runner was thrown away."""

    @property
    def reward(self) -> Reward:
        """What is read at the end: reward.json before reward.txt, as Harbor does."""
        return self.txt if self.json is Reward.NONE else self.json

    def get(self, name: str) -> str | None:
        """Return a variable's value, or None where the script has not set it."""
        return next((value for known, value in self.variables if known == name), None)

    def put(self, name: str, value: str) -> State:
        """Return the state with a variable set."""
        return self._replace(variables=tuple(sorted({**dict(self.variables), name: value}.items())))

    def write(self, target: Target | None, reward: Reward) -> State:
        """Return the state with a reward written; ``maybe`` makes both files unknown."""
        match target:
            case "txt":
                return self._replace(txt=reward)
            case "json":
                return self._replace(json=reward)
            case "maybe":
                return self._replace(txt=Reward.UNKNOWN, json=Reward.UNKNOWN)
            case None:
                return self

    def same_effects(self, other: State) -> bool:
        """Whether two states differ in nothing that a reward depends on."""
        return (self.txt, self.json, self.failed, self.variables) == (
            other.txt,
            other.json,
            other.failed,
            other.variables,
        )


def reward_target(path: str) -> Target | None:
    """Return which reward file a path is; a relative one, or one with an unknown folder, by its name."""
    name = posixpath.basename(path)
    if UNKNOWN in name or NONZERO in name:
        return "maybe"
    kind = _NAMES.get(name)
    if kind is None or (path.startswith("/") and UNKNOWN not in path and posixpath.normpath(path) not in REWARD_FILES):
        return None
    return "json" if kind == "json" else "txt"


def reward_of(text: str, target: Target | None) -> Reward:
    """Return what a text means in a reward file; what is no reward at all is unknown."""
    if UNKNOWN in text or NONZERO in text:
        return Reward.UNKNOWN
    try:
        value = json.loads(text) if target == "json" else float(text.strip())
        if isinstance(value, dict):
            value = value["reward"] if "reward" in value else min(value.values())
        number = float(value)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return Reward.UNKNOWN
    if not math.isfinite(number):
        return Reward.UNKNOWN
    return Reward.POSITIVE if number > 0 else Reward.ZERO
