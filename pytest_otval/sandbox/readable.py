"""Waiting until something can be read. select() takes no descriptor above 1023, and a long run may have more."""

from __future__ import annotations

import math
import select
from collections.abc import Iterable
from typing import Protocol, TypeVar


class _Handle(Protocol):
    def fileno(self) -> int: ...


H = TypeVar("H", bound="int | _Handle")


def readable(handles: Iterable[H], seconds: float | None = None) -> list[H]:
    """Return what can be read, or is at its end, as soon as there is any; nothing after ``seconds``, None: never."""
    poll, by_number = select.poll(), dict[int, H]()
    for handle in handles:
        number = handle if isinstance(handle, int) else handle.fileno()
        by_number[number] = handle
        poll.register(number, select.POLLIN)
    # Rounded up: who waits for a moment must not ask a thousand times.
    milliseconds = None if seconds is None else math.ceil(min(max(seconds, 0.0), 86_400.0) * 1000)
    return [by_number[number] for number, _ in poll.poll(milliseconds)]
