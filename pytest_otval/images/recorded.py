"""Ports and signals: recorded only, but Docker refuses what is none."""

from __future__ import annotations

import re
import signal

_PORT = re.compile(r"(?:.*:)?(\d{1,9})(?:-(\d{1,9}))?(?:/(tcp|udp|sctp))?", re.IGNORECASE)
_MAX_PORT = 65535


def checked_port(word: str) -> str:
    """Return a word of EXPOSE: ``80``, ``80/udp``, ``8000-8010``. Raises ValueError, one line."""
    found = _PORT.fullmatch(word)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if not first <= last <= _MAX_PORT:
        raise ValueError(f"no port: {word[:200]!r}")
    return word


def checked_signal(word: str) -> str:
    """Return a word of STOPSIGNAL: ``9``, ``KILL``, ``SIGKILL``, ``SIGRTMIN+3``. Raises ValueError, one line."""
    name = word.upper().removeprefix("SIG")
    if not (word.isdecimal() and 0 < int(word[:9]) <= 64) and name not in _SIGNALS:
        raise ValueError(f"no signal: {word[:200]!r}")
    return word


_SIGNALS = {
    *(one.name.removeprefix("SIG") for one in signal.Signals),
    *(f"RTMIN+{number}" for number in range(1, 16)),
    *(f"RTMAX-{number}" for number in range(1, 15)),
}
