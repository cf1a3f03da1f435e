"""How far a command is, on a terminal."""

from __future__ import annotations

import sys


class Told:
    """Says on a terminal how far it is."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._shown = sys.stderr.isatty()

    def say(self, what: str) -> None:
        """Say it in place of what was said before."""
        if self._shown:
            print(f"\r{self._name}: {what}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """End the line."""
        if self._shown:
            print(file=sys.stderr)
