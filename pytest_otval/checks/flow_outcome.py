"""How a command can leave a test script: in which state, and to where."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum, auto
from typing import NamedTuple

from pytest_otval.checks.flow_state import NONZERO, State


class Signal(StrEnum):
    """Where the script goes after a command."""

    NEXT = auto()
    EXIT = auto()
    RETURN = auto()
    BREAK = auto()


class Outcome(NamedTuple):
    """One way a command can leave the script."""

    state: State
    signal: Signal = Signal.NEXT


def distinct(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return outcomes once each, in their order."""
    return list(dict.fromkeys(outcomes))


def flipped(outcome: Outcome) -> Outcome:
    """Return what ``!`` makes of an outcome."""
    return outcome._replace(state=outcome.state._replace(status=NONZERO if outcome.state.status == "0" else "0"))


def back(after: State, before: State) -> State:
    """Return what a subshell leaves: files and what was seen, not its variables, options and traps."""
    return after._replace(
        variables=before.variables,
        errexit=before.errexit,
        pipefail=before.pipefail,
        exit_trap=before.exit_trap,
        err_trap=before.err_trap,
    )


def settled(before: State, outcomes: list[Outcome]) -> list[Outcome]:
    """Take doubt back where it cannot matter: whichever branch was taken, the script went on with nothing changed.

    Before the tests have run, a branch that leaves the script is a guard, which a sound trial does not meet.
    """
    alike = all(one.state.same_effects(before) and one.signal is Signal.NEXT for one in outcomes)
    if before.ran and not alike:
        return outcomes
    return [
        one._replace(state=one.state._replace(certain=before.certain))
        if one.signal is Signal.NEXT and one.state.certain is not before.certain and one.state.same_effects(before)
        else one
        for one in outcomes
    ]
