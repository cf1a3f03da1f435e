"""How long to wait before a server is asked again: as long as it asks for, within a bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime

from tenacity import RetryCallState

MAX_WAIT = 60.0
"""Seconds between two tries, whatever a server asks for."""

Headers = Mapping[str, str] | Message
"""Of an answer; names are found in any case."""
Wait = Callable[[RetryCallState], float]


def as_asked(headers_of: Callable[[BaseException], Headers | None], otherwise: Wait) -> Wait:
    """Return what waits as long as the headers of an error ask for, else as ``otherwise`` says."""

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        headers = headers_of(error) if error is not None else None
        asked = _retry_after(headers) if headers is not None else None
        return otherwise(state) if asked is None else min(max(asked, 0.0), MAX_WAIT)

    return wait


def _retry_after(headers: Headers) -> float | None:
    """Return the seconds of ``Retry-After``, which may be a number or a date."""
    value = headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return float(value)
    try:
        return (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
