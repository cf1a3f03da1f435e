"""What commands show on a terminal: sizes as a person reads them, and how far they are."""

from __future__ import annotations

import sys
import time
from types import TracebackType

_SECONDS = 0.2


def size_text(count: float) -> str:
    """Return a number of bytes in decimal units, as quotas and disks are sold."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


class Progress:
    """A line that counts, where standard error is a terminal and the answers go elsewhere."""

    def __init__(self, word: str) -> None:
        self._word = word
        self._shown = sys.stderr.isatty() and not sys.stdout.isatty()
        self._count = 0
        self._last = 0.0

    def __enter__(self) -> Progress:
        return self

    def step(self) -> None:
        """Count one more."""
        self._count += 1
        now = time.monotonic()
        if self._shown and now - self._last >= _SECONDS:
            self._last = now
            print(f"\r{self._count} {self._word}", end="", file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._last:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
