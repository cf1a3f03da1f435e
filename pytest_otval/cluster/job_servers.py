"""Models that a job serves to its own attempts: started before these, watched while they run, ended with the job.

Each is the command ``models serve``, which takes its part of the node, brings the weights to the node's disk and tells
the server's end by its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.core import printable
from pytest_otval.llm.serving import LAUNCH, POLL_SECONDS


@dataclass(frozen=True, slots=True)
class _One:
    name: str
    process: subprocess.Popen[bytes]
    output: Path
    errors: Path

    def url(self) -> str:
        """Return its address; empty until it is ready."""
        text = self.output.read_text()
        return str(json.loads(text)["base_url"]) if text.endswith("\n") else ""

    def fault(self) -> str:
        """Return why it is not there any more; empty while it is."""
        status = self.process.poll()
        if status is None:
            return ""
        lines = self.errors.read_text(errors="replace").strip().splitlines()
        said = lines[-1].removeprefix("error: ") if lines else f"`models serve` ended with status {status}"
        # What it says of its log goes with the node's folder.
        return printable(said.partition("; its output is in")[0])


class Servers:
    """Of one job."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is the node's own."""
        self._folder = folder
        self._all: list[_One] = []

    def start(self, models: Sequence[str], environment: Mapping[str, str], ended: Callable[[], bool]) -> dict[str, str]:
        """Start them, and return the address of each once all are ready, one is not there any more, or ``ended()``.

        An address is empty where the server is not ready. Raises OSError.
        """
        for number, name in enumerate(models):
            self._all.append(self._started(number, name, environment))
        while not all(one.url() for one in self._all) and not self.fault() and not ended():
            time.sleep(POLL_SECONDS)
        return {one.name: one.url() for one in self._all}

    def _started(self, number: int, name: str, environment: Mapping[str, str]) -> _One:
        output, errors = self._folder / f"server-{number}.out", self._folder / f"server-{number}.err"
        command = [sys.executable, "-P", "-m", "pytest_otval", "models", "serve", name]
        with output.open("wb") as out, errors.open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, "-c", LAUNCH, *command],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=self._folder,
            )
        return _One(name, process, output, errors)

    def fault(self) -> str:
        """Return why one is not there any more, or was never ready; empty while all are well."""
        return next(filter(None, (one.fault() for one in self._all)), "")

    def last_words(self) -> str:
        """Return what those that ended said, with the end of their servers' output."""
        ended = [one for one in self._all if one.process.poll() is not None]
        return "".join(one.errors.read_text(errors="replace") for one in ended)

    def end(self) -> None:
        """End them, with all that they started."""
        for one in self._all:
            one.process.terminate()
        for one in self._all:
            one.process.wait()
