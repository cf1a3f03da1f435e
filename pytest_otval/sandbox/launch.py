"""How the runtime of a container is started: as a child of ours, or as a step of the Slurm job in which we run.

In a step Slurm's control group bounds memory and cores of a trial, and ends all of it. srun hands on no descriptors, so
the step's first program (``step_program``) connects to us and gets them over a socket; it stays as the runtime's parent
and tells how that ended.
"""

from __future__ import annotations

import array
import json
import os
import secrets
import socket
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import sh

from pytest_otval.sandbox import step_program
from pytest_otval.sandbox.base import NoStartError
from pytest_otval.sandbox.readable import readable

STEP_SECONDS = 600.0
"""How long Slurm may take to give a step its cores and memory: steps that end give theirs back with a delay."""
_SLACK_MB = 64
"""Memory of a step beside the task's: for the runtime, and so that our own limit, which tells, comes first."""
_TICK = 0.2


@dataclass(frozen=True, slots=True)
class Start:
    """A program that is to be started in a session of its own."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cores: frozenset[int]
    descriptors: tuple[int, int, int]
    """Its standard input, output and error."""
    memory_mb: int | None = None


class Launched(Protocol):
    """A program that was started."""

    @property
    def pid(self) -> int:
        """Its pid, which is also that of its session."""

    def is_alive(self) -> bool:
        """Whether it runs."""

    def was_killed(self) -> bool:
        """Whether a signal ended it; asked once it has ended."""


class Launcher(Protocol):
    """Starts programs."""

    def __call__(self, start: Start) -> Launched:
        """Raises NoStartError."""


class Child:
    """A program as a child of this process."""

    def __init__(self, start: Start) -> None:
        stdin, stdout, stderr = start.descriptors
        options: dict[str, Any] = {
            "_in": stdin,
            "_out": stdout,
            "_err": stderr,
            "_tty_in": False,
            "_tty_out": False,
            "_new_session": True,
            "_return_cmd": True,
            "_truncate_exc": False,
            "_bg": True,
            "_bg_exc": False,
            "_ok_code": range(256),
            "_env": dict(start.env),
            "_cwd": "/",
            "_preexec_fn": lambda: os.sched_setaffinity(0, start.cores),
        }
        self._process = sh.Command(start.argv[0])(*start.argv[1:], **options)

    @property
    def pid(self) -> int:
        """See ``Launched``."""
        return int(self._process.pid)

    def is_alive(self) -> bool:
        """See ``Launched``."""
        return bool(self._process.is_alive())

    def was_killed(self) -> bool:
        """See ``Launched``."""
        with suppress(sh.ErrorReturnCode):
            self._process.wait()
        return int(self._process.exit_code) < 0


class Step:
    """A program in a step of the job."""

    def __init__(self, start: Start) -> None:
        self._status: int | None = None
        # Abstract: a path below $TMPDIR may be longer than a socket's may be.
        name = f"otval-{secrets.token_hex(16)}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(f"\0{name}")
            listening.listen(1)
            self._srun = _srun(start, name)
            self._link = _accepted(listening, self._srun)
        order = {"argv": list(start.argv), "env": dict(start.env), "cores": sorted(start.cores)}
        self._link.settimeout(STEP_SECONDS)
        try:
            self._link.sendmsg(
                [b"\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", start.descriptors).tobytes())]
            )
            self._link.sendall(json.dumps(order).encode() + b"\n")
            self._pid = int(self._line())
        except (OSError, ValueError) as error:
            raise NoStartError(f"the step ended before it ran anything: {_said(self._srun) or error}") from None

    def _line(self) -> str:
        line = b""
        while not line.endswith(b"\n"):
            data = self._link.recv(1)
            if not data:
                raise ConnectionResetError("no answer")
            line += data
        return line.decode()

    @property
    def pid(self) -> int:
        """See ``Launched``."""
        return self._pid

    def is_alive(self) -> bool:
        """See ``Launched``."""
        if self._status is None and readable([self._link], 0):
            try:
                self._status = int(self._line())
            except (OSError, ValueError):
                # The step was ended as a whole, as for its memory.
                self._status = -1
            self._link.close()
        return self._status is None

    def was_killed(self) -> bool:
        """See ``Launched``."""
        while self.is_alive():
            time.sleep(0.002)
        return self._status is not None and self._status < 0


def _srun(start: Start, name: str) -> Any:
    memory = [] if start.memory_mb is None else [f"--mem={start.memory_mb + _SLACK_MB}M"]
    argv = ["--exact", "--nodes=1", "--ntasks=1", f"--cpus-per-task={len(start.cores)}", *memory, "--cpu-bind=none"]
    argv += ["--export=ALL", "--input=none", "--quiet", "--kill-on-bad-exit=0", "--job-name=trial"]
    # What the job was asked for is no wish of its steps.
    env = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM_MEM_", "SLURM_EXPORT_ENV"))}
    words = [sys.executable, "-I", "-S", str(Path(step_program.__file__)), name]
    options: dict[str, Any] = {
        "_tty_out": False,
        "_new_session": True,
        "_return_cmd": True,
        "_bg": True,
        "_bg_exc": False,
        "_ok_code": range(256),
        "_env": env,
        "_cwd": "/",
    }
    try:
        return sh.Command("srun")(*argv, *words, **options)
    except sh.CommandNotFound:
        raise NoStartError("srun is not on PATH, and the profile wants each trial in a step") from None


def _accepted(listening: socket.socket, srun: Any) -> socket.socket:
    """Return the connection of the step's program, which has to be ours. Raises NoStartError."""
    deadline = time.monotonic() + STEP_SECONDS
    listening.settimeout(_TICK)
    while time.monotonic() < deadline:
        try:
            link, _ = listening.accept()
        except TimeoutError:
            if srun.is_alive():
                continue
            raise NoStartError(f"Slurm made no step: {_said(srun)}") from None
        _, uid, _ = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        if uid == os.getuid():
            return link
        link.close()
    srun.terminate()
    raise NoStartError(f"Slurm made no step within {STEP_SECONDS:.0f} s")


def _said(srun: Any) -> str:
    with suppress(sh.ErrorReturnCode, sh.SignalException):
        srun.wait()
    lines = srun.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
