"""Words and conditions of a test script, as far as they are known in a state."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

from pytest_otval.checks import shell_ast as ast
from pytest_otval.checks.flow_state import NONZERO, UNKNOWN, Reward, State, reward_target

_NUMERIC: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq,
    "-ne": operator.ne,
    "-gt": operator.gt,
    "-lt": operator.lt,
    "-ge": operator.ge,
    "-le": operator.le,
}
_OF_A_NONZERO_STATUS = {"-eq": False, "=": False, "==": False, "-ne": True, "!=": True, "-gt": True, "-le": False}
"""What a status that is not 0, hence above it, gives when compared with 0."""


def value(word: ast.Word | None, state: State) -> str:
    """Return a word's value, with UNKNOWN in the place of what only a run can tell."""
    if word is None:
        return ""
    parts = word.parts
    return _part(parts[0], state) if len(parts) == 1 else "".join([_part(part, state) for part in parts])


def _part(part: ast.Part, state: State) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, ast.Variable):
        if part.name == "?":
            return state.status
        known = state.get(part.name)
        if known is None and part.default is not None:
            return value(part.default, state)
        return UNKNOWN if known is None else known
    return UNKNOWN


def decide(condition: ast.Compare | ast.Probe | None, state: State) -> bool | None:
    """Return a condition's answer, or None where only a run can tell."""
    match condition:
        case ast.Compare(operator=how, left=left, right=right):
            return _compare(how, value(left, state), value(right, state))
        case ast.Probe(operator=how, word=word):
            return _probe(how, value(word, state), state)
    return None


def _compare(how: str, left: str, right: str) -> bool | None:
    if NONZERO in (left, right):
        status, other = (left, right) if left == NONZERO else (right, left)
        same_side = left == NONZERO or how in ("-eq", "-ne", "=", "==", "!=")
        return _OF_A_NONZERO_STATUS.get(how) if status and other == "0" and same_side else None
    if UNKNOWN in left + right or NONZERO in left + right:
        return None
    if how in _NUMERIC:
        if not re.fullmatch(r"-?\d{1,18}", left.strip()) or not re.fullmatch(r"-?\d{1,18}", right.strip()):
            return None
        return _NUMERIC[how](int(left), int(right))
    if how in ("=", "==", "!="):
        if re.search(r"[*?\[]", right):
            return None
        return (left == right) == (how != "!=")
    return None


def _probe(how: str, text: str, state: State) -> bool | None:
    if how in ("-n", "-z"):
        known = text == NONZERO or not (UNKNOWN in text or NONZERO in text)
        return (text != "") == (how == "-n") if known else None
    if how in ("-f", "-e", "-s", "-r"):
        reward = {"txt": state.txt, "json": state.json}.get(reward_target(text) or "")
        if reward is not None and reward is not Reward.UNKNOWN:
            return reward is not Reward.NONE
    return None
