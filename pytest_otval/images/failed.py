"""What a run remembers of images that cannot be built, so that sisters and later stages do not try again.

``RUN/failed-images/<host>-<pid>.jsonl``: one file a process, so that no lock is needed and there are few files, however
many images fail.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

from pytest_otval.core import REASONS, Conclusion, Verdict


class FailedImages:
    """The memory in a folder, for all processes of a run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = folder / f"{socket.gethostname()}-{os.getpid()}.jsonl"
        self._known: dict[str, tuple[str, str, str]] = {}
        self._read: dict[Path, int] = {}
        """Bytes of each file that were read."""

    def remember(self, key: str, conclusion: Conclusion) -> None:
        """Write down a fault of the task; the machine's may be gone next time."""
        if REASONS[conclusion.reason].verdict is not Verdict.FAIL:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        line = json.dumps([key, conclusion.reason, conclusion.headline, conclusion.log])
        handle = os.open(self._own, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            # The newline before ends what a killed process of the same number left half.
            os.write(handle, f"\n{line}\n".encode())
        finally:
            os.close(handle)

    def require_unknown(self, key: str) -> None:
        """Raise the Conclusion that is remembered for an image, if there is one."""
        for path in self._folder.glob("*.jsonl"):
            self._read_on(path)
        if key in self._known:
            raise Conclusion(*self._known[key])

    def _read_on(self, path: Path) -> None:
        with path.open("rb") as file:
            file.seek(self._read.get(path, 0))
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read[path] = self._read.get(path, 0) + len(line)
                try:
                    key, reason, headline, log = json.loads(line)
                    self._known[key] = (reason, headline, log)
                except (ValueError, TypeError):
                    continue
