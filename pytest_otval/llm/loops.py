"""Whether an agent goes in circles: the same command with the same output, again and again."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from pytest_otval.llm.steps import Step

LONGEST_BLOCK = 20
"""Circles of more steps are not looked for."""

TIMES = 3
"""So often in a row a block of steps has to come to be a loop: a command that is tried twice is none."""

NGRAM = 3

_VARIES = re.compile(
    r"0x[0-9a-fA-F]+|\b\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds?|m)\b|\b\d\d?:\d\d(?::\d\d)?(?:\.\d+)?\b|\b\d{4}-\d\d-\d\d\b"
)
"""What differs between outputs that say the same: addresses, durations, times, dates."""


@dataclass(frozen=True, slots=True)
class Loops:
    """How much of a conversation repeats itself."""

    repeated_steps: int
    """Steps whose command and output were there before, at any distance."""
    repeated_ngrams: int
    """Runs of ``NGRAM`` such steps, in the same order as before."""
    longest_repeat: int
    """How often in a row one block of steps came, at most; 1 where none came twice, 0 for no steps."""
    steps_in_loops: int
    """Steps of blocks that came ``TIMES`` times in a row or more, the first time included."""


def loops_of(steps: Sequence[Step]) -> Loops:
    """Return how much repeats itself; steps without a command are compared by what the model said."""
    keys = [_key(step) for step in steps]
    ngrams = [tuple(keys[start : start + NGRAM]) for start in range(len(keys) - NGRAM + 1)]
    longest, inside = 1 if keys else 0, [False] * len(keys)
    for period in range(1, min(LONGEST_BLOCK, len(keys) // 2) + 1):
        for start, length in _periodic(keys, period):
            times = length // period
            longest = max(longest, times)
            if times >= TIMES:
                inside[start : start + length] = [True] * length
    return Loops(_seen_before(keys), _seen_before(ngrams), longest, sum(inside))


def _key(step: Step) -> Hashable:
    said = step.output if step.command else step.thought
    return step.tool, step.command.strip(), _VARIES.sub("~", said)


def _seen_before(keys: Sequence[Hashable]) -> int:
    return len(keys) - len(set(keys))


def _periodic(keys: Sequence[Hashable], period: int) -> list[tuple[int, int]]:
    """Return start and length of stretches of two blocks or more in which each step is as the one ``period`` before."""
    found, start = [], 0
    for index in range(period, len(keys) + 1):
        if index < len(keys) and keys[index] == keys[index - period]:
            continue
        if index - start >= 2 * period:
            found.append((start, index - start))
        start = index - period + 1
    return found
