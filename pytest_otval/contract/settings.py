"""The settings that a contract fixes: those that may change a verdict but the flavour, and those of attempts."""

from __future__ import annotations

from dataclasses import fields

import msgspec

from pytest_otval.contract.model import Contract
from pytest_otval.core import OtvalUsageError
from pytest_otval.settings import Attempts, VerdictSettings

_OF_ATTEMPTS = frozenset(field.name for field in fields(Attempts))


def chosen_settings(verdict: VerdictSettings, attempts: Attempts) -> dict[str, object]:
    """Return the settings that a contract fixes, where they are not the usual ones, in plain JSON types."""
    found = {**_unusual(verdict, VerdictSettings()), **_unusual(attempts, Attempts())}
    found.pop("flavour", None)
    return dict(msgspec.to_builtins(found))


def _unusual(chosen: VerdictSettings | Attempts, usual: VerdictSettings | Attempts) -> dict[str, object]:
    values = {name: getattr(chosen, name) for name in chosen.__slots__}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value != getattr(usual, name)
    }


def settings_of(contract: Contract, flavour: str) -> tuple[VerdictSettings, Attempts]:
    """Return the settings that a contract fixes. Raises OtvalUsageError."""
    of_attempts = {name: value for name, value in contract.settings.items() if name in _OF_ATTEMPTS}
    others = {name: value for name, value in contract.settings.items() if name not in _OF_ATTEMPTS}
    try:
        attempts = msgspec.convert(of_attempts, Attempts)
        settings = msgspec.convert({**others, "flavour": flavour}, VerdictSettings)
    except msgspec.ValidationError as error:
        raise OtvalUsageError(f"the contract has a setting that this version does not know: {error}") from None
    least = min(attempts.repeat, attempts.k, attempts.votes)
    if least < 1:
        raise OtvalUsageError(f"the contract has a number of attempts that is none: {least}")
    return settings, attempts
