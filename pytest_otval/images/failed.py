"""What a run remembers of images that cannot be built, so that sisters and later stages do not try again.

``RUN/failed-images/<host>-<pid>.jsonl``: one file a process, so that no lock is needed and there are few files, however
many images fail.
"""

from __future__ import annotations

import json
import math
import os
import socket
from pathlib import Path

from pytest_otval.core import REASONS, Conclusion, Verdict
from pytest_otval.sandbox.base import Limits


class FailedImages:
    """The memory in a folder, for all processes of a run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = folder / f"{socket.gethostname()}-{os.getpid()}.jsonl"
        self._known: dict[str, tuple[str, str, str, float]] = {}
        self._read: dict[Path, int] = {}
        """Bytes of each file that were read."""

    def remember(self, key: str, conclusion: Conclusion, seconds: float, limits: Limits) -> None:
        """Write down a fault of the task; the machine's may be gone next time.

        ``seconds`` and ``limits`` are what the build was given.
        """
        if REASONS[conclusion.reason].verdict is not Verdict.FAIL:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        given = _given(conclusion.reason, seconds, limits)
        line = json.dumps([key, conclusion.reason, conclusion.headline, conclusion.log, given])
        handle = os.open(self._own, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            # The newline before ends what a killed process of the same number left half.
            os.write(handle, f"\n{line}\n".encode())
        finally:
            os.close(handle)

    def require_unknown(self, key: str, seconds: float, limits: Limits) -> None:
        """Raise the Conclusion that is remembered for an image, if there is one.

        What a limit ended is tried again for a task that gives more: images are shared, limits are not.
        """
        for path in self._folder.glob("*.jsonl"):
            self._read_on(path)
        if key not in self._known:
            return
        reason, headline, log, given = self._known[key]
        if _given(reason, seconds, limits) <= given:
            raise Conclusion(reason, headline, log)

    def _read_on(self, path: Path) -> None:
        with path.open("rb") as file:
            file.seek(self._read.get(path, 0))
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read[path] = self._read.get(path, 0) + len(line)
                try:
                    key, reason, headline, log, given = json.loads(line)
                    self._known[key] = (reason, headline, log, float(given))
                except (ValueError, TypeError):
                    continue


def _given(reason: str, seconds: float, limits: Limits) -> float:
    """Return how much a build was given of what a reason class is about; of others, and without a limit, no bound."""
    amounts = {"build-timeout": seconds, "memory-limit": limits.memory_mb, "storage-limit": limits.storage_mb}
    amount = amounts.get(reason)
    return math.inf if amount is None else float(amount)
