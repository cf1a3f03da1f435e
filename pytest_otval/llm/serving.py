"""A server of a model on this node: started, waited for, watched, and ended with all of its processes."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from pytest_otval.profile import ModelSection

POLL_SECONDS = 0.2
"""Between two looks at whether it is alive."""
HEALTH_SECONDS = 10.0
"""Between two questions whether it is well, and how long its answer may take."""
MISSES = 6
"""So many questions without an answer, one after the other, and it hangs."""
END_SECONDS = 15.0
"""What it gets between SIGTERM and SIGKILL: vLLM frees the memory of its GPUs."""
_LOG_BYTES = 4096
LAUNCH = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15); os.execvp(sys.argv[1], sys.argv[1:])"
"""Asks the kernel for a SIGTERM when whoever started it is gone (PR_SET_PDEATHSIG), and becomes the server."""


class ServerError(Exception):
    """The server died, hangs or never was ready; one line."""


class Server:
    """One server. Use it as a context manager: at its end no process of it is left."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], health_url: str, log: Path) -> None:
        """Start it; its output goes to ``log``. Raises ServerError: there is no such program.

        It ends with the thread that starts it.
        """
        self._health_url = health_url
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        if shutil.which(argv[0], path=environment.get("PATH")) is None:
            raise ServerError(f"there is no program {argv[0]} here: the profile's serve.command says how it is started")
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", LAUNCH, *argv],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._seen = {self._process.pid: psutil.Process(self._process.pid)}
        """All of its processes that were ever seen; psutil knows them from later ones with the same number."""

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def wait_until_ready(self, seconds: float, ended: Callable[[], bool]) -> None:
        """Wait until it is well, or ``ended()``. Raises ServerError: it died, or was not ready in time."""
        deadline = time.monotonic() + seconds
        while not ended() and not self._is_well(1.0):
            self._require_alive()
            if time.monotonic() > deadline:
                raise ServerError(f"it was not ready within {seconds:g} s")
            time.sleep(POLL_SECONDS)

    def watch(self, ended: Callable[[], bool]) -> None:
        """Watch it until ``ended()``. Raises ServerError: it died, or hangs."""
        misses, asked = 0, time.monotonic()
        while not ended():
            self._require_alive()
            if time.monotonic() - asked >= HEALTH_SECONDS:
                misses = 0 if self._is_well(HEALTH_SECONDS) else misses + 1
                asked = time.monotonic()
            if misses >= MISSES:
                raise ServerError(f"it hangs: {MISSES} questions how it is were not answered")
            time.sleep(POLL_SECONDS)

    def _require_alive(self) -> None:
        # It stays a zombie until the end: so long its number, which is its session's, is nobody else's.
        end = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if end is not None:
            how = "ended with status" if end.si_code == os.CLD_EXITED else "was killed by signal"
            raise ServerError(f"it {how} {end.si_status}")
        self._find()

    def _is_well(self, timeout: float) -> bool:
        # A site's proxy does not know this node.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(self._health_url, timeout=timeout) as answer:
                return bool(answer.status == 200)
        except (OSError, ValueError, urllib.error.HTTPError):
            return False

    def end(self) -> None:
        """End it and everything that it started, also what it left behind when it died."""
        for wanted in (signal.SIGTERM, signal.SIGKILL):
            deadline, told = time.monotonic() + END_SECONDS, set[int]()
            while (alive := self._alive()) and time.monotonic() < deadline:
                for process in alive:
                    if process.pid not in told:
                        with suppress(psutil.Error):
                            process.send_signal(wanted)
                        told.add(process.pid)
                time.sleep(POLL_SECONDS / 4)
        self._process.wait()

    def _alive(self) -> list[psutil.Process]:
        self._find()
        return [process for process in self._seen.values() if _runs(process)]

    def _find(self) -> None:
        """Find its processes: those below it, and those of its session, whoever their parent is by now."""
        for process in list(self._seen.values()):
            with suppress(psutil.Error):
                for child in process.children(recursive=True):
                    self._seen.setdefault(child.pid, child)
        for process in psutil.process_iter():
            with suppress(OSError, psutil.Error):
                if os.getsid(process.pid) == self._process.pid:
                    self._seen.setdefault(process.pid, process)

    def last_words(self) -> str:
        """Return the end of its output."""
        with suppress(OSError), self._log.open("rb") as file:
            file.seek(max(0, self._log.stat().st_size - _LOG_BYTES))
            return file.read().decode(errors="replace")
        return ""


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def command_of(section: ModelSection, name: str, weights: Path, host: str, port: int, gpus: int) -> list[str]:
    """Return the words that start a server, from the profile's."""
    values = {"weights": weights, "name": name, "host": host, "port": port, "gpus": gpus, "context": section.context}
    words: list[str] = []
    for word in section.serve.command:
        if "{context}" in word and section.context is None:
            # With the option in front of it.
            words.pop()
        else:
            words.append(word.format(**values))
    return words


def free_port(host: str) -> int:
    """Return a port that nobody uses at present. Raises OSError."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
