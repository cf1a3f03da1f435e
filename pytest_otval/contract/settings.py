"""The settings that a contract fixes: those that may change a verdict but the flavour, and how many attempts."""

from __future__ import annotations

import msgspec

from pytest_otval.contract.model import Contract
from pytest_otval.core import OtvalUsageError
from pytest_otval.settings import VerdictSettings


def chosen_settings(verdict: VerdictSettings, repeat: int) -> dict[str, object]:
    """Return the settings that a contract fixes, where they are not the usual ones, in plain JSON types."""
    usual, found = VerdictSettings(), dict[str, object]()
    for name in VerdictSettings.__slots__:
        value = getattr(verdict, name)
        if name != "flavour" and value != getattr(usual, name):
            found[name] = list(value) if isinstance(value, tuple) else value
    if repeat != 1:
        found["repeat"] = repeat
    return dict(msgspec.to_builtins(found))


def settings_of(contract: Contract, flavour: str) -> tuple[VerdictSettings, int]:
    """Return the settings that a contract fixes, and its number of attempts. Raises OtvalUsageError."""
    values = {name: value for name, value in contract.settings.items() if name != "repeat"}
    try:
        settings = msgspec.convert({**values, "flavour": flavour}, VerdictSettings)
    except msgspec.ValidationError as error:
        raise OtvalUsageError(f"the contract has a setting that this version does not know: {error}") from None
    repeat = contract.settings.get("repeat", 1)
    if type(repeat) is not int or repeat < 1:
        raise OtvalUsageError(f"the contract has a number of attempts that is none: {repeat!r}")
    return settings, repeat
