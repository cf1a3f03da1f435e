"""A running container: its first process, its output, its limits, its end."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from pytest_otval.sandbox.base import Command, CommandResult, Ended, Limits, NoStartError
from pytest_otval.sandbox.family import descendants
from pytest_otval.sandbox.first_process import HELLO, SHELL, command_script
from pytest_otval.sandbox.gpus import Gpu, environment
from pytest_otval.sandbox.launch import Child, Launcher, Start
from pytest_otval.sandbox.leftovers import kill_session
from pytest_otval.sandbox.limits import CappedLog, pss_bytes
from pytest_otval.sandbox.pipes import OutputPipes
from pytest_otval.sandbox.readable import readable

_TICK = 0.2
"""Seconds between two looks at the limits; a process can take 1 GB/s."""
_START_SECONDS = 60
_DEATH_SECONDS = 5

_End = tuple[Ended, int | None]


@dataclass(slots=True)
class _Watch:
    """What is watched while a command runs."""

    deadline: float
    next_storage_look: float
    recorder: psutil.Process | None = None
    """The shell that is to tell the command's status."""
    silent: bool = False
    """Whether the recorder was found dead once."""


class RunningContainer:
    """See ``base.Container``. ``argv`` is the runtime's whole command line."""

    def __init__(
        self,
        argv: list[str],
        env: dict[str, str],
        limits: Limits,
        cores: set[int],
        on_start: Callable[[int], None],
        storage_bytes: Callable[[], int] | None,
        gpus: Sequence[Gpu] = (),
        launch: Launcher = Child,
    ) -> None:
        self._limits = limits
        self._gpus = gpus
        self._storage_bytes = storage_bytes
        self._number = 0
        self._dead = False
        self._control, theirs = socket.socketpair()
        self._pipes = OutputPipes()
        descriptors = (theirs.fileno(), *self._pipes.theirs)
        try:
            self._process = launch(Start(argv, env, frozenset(cores), descriptors, limits.memory_mb))
        except BaseException:
            self._control.close()
            self._pipes.close()
            raise
        finally:
            theirs.close()
            self._pipes.close_theirs()
        began = time.monotonic()
        # A long script waits until the shell has read its beginning.
        self._control.settimeout(_START_SECONDS)
        on_start(self._process.pid)
        try:
            self._init = self._await_ready(began + _START_SECONDS)
        except BaseException:
            self.close()
            raise
        self._ours = {process.pid for process in self._processes()}
        self.start_seconds = time.monotonic() - began

    @property
    def init_pid(self) -> int:
        """Host pid of the container's process 1."""
        return self._init.pid

    def _await_ready(self, deadline: float) -> psutil.Process:
        words = bytearray()
        with suppress(BrokenPipeError, ConnectionResetError):
            self._control.sendall(HELLO.encode())
        answer = self._read_line(deadline, words)
        if answer != "ready":
            words += self._pipes.words()
            lines = words.decode(errors="replace").strip().splitlines()
            raise NoStartError(lines[-1] if lines else "the container runtime ended without a word")
        for process in psutil.Process(self._process.pid).children(recursive=True):
            if _inner_pid(process.pid) == "1":
                return process
        raise NoStartError("the container has no process namespace of its own")

    def run(self, command: Command) -> CommandResult:
        """See ``base.Container``."""
        assert not self._dead, "the container is dead"
        self._number += 1
        command = replace(command, env=environment(self._gpus, command.env))
        began = time.monotonic()
        log = CappedLog(command.log, self._limits.log_bytes)
        try:
            self._control.sendall(command_script(command, self._number).encode(errors="surrogateescape"))
            ended, status = self._follow(command, log, began)
            left_alive = self._left_alive() if ended == "exit" else 0
            if ended == "exit" and self._over_storage():
                ended, status = "storage", None
            if ended != "exit":
                self.kill()
            self._pipes.carry(command.stdout, log)
        except (BrokenPipeError, ConnectionResetError):
            ended, status, left_alive = "killed" if self._killed_from_outside() else "exit", None, 0
            self.kill()
        finally:
            log.close()
        return CommandResult(ended, status, time.monotonic() - began, command.log, left_alive)

    def _follow(self, command: Command, log: CappedLog, began: float) -> _End:
        """Carry output and watch limits until the first process tells how the command ended."""
        watch = _Watch(began + (float("inf") if command.seconds is None else command.seconds), began + 1)
        end: _End | None = None
        while end is None:
            tick = time.monotonic() + _TICK
            answer = self._read_line(min(tick, watch.deadline), pump=(command.stdout, log))
            if answer is None:
                end = ("killed" if self._killed_from_outside() else "exit"), None
            elif answer:
                end = self._told(answer, watch)
            else:
                end = self._seen(watch)
        return end

    def _told(self, answer: str, watch: _Watch) -> _End | None:
        """Take one word of the first process; words about earlier commands are late."""
        word, number, value = [*answer.split(), "", "", ""][:3]
        if number != str(self._number):
            return None
        if word == "exit" and value.isdigit():
            return "exit", int(value)
        if word == "refused":
            return "refused", None
        if word == "started":
            watch.recorder = self._find(value)
        return None

    def _seen(self, watch: _Watch) -> _End | None:
        """Look at the limits, and at the shell that is to tell the status."""
        now = time.monotonic()
        if now >= watch.deadline:
            return "timeout", None
        if self._over_memory():
            return "memory", None
        if now >= watch.next_storage_look:
            if self._over_storage():
                return "storage", None
            # Measuring a big layer takes long: never spend more than a tenth of the time on it.
            watch.next_storage_look = now + max(2.0, 10 * (time.monotonic() - now))
        if watch.recorder is not None and _is_dead(watch.recorder):
            # Its last word may have come since we listened: only one that stays silent was killed.
            if watch.silent:
                return "exit", None
            watch.silent = True
        return None

    def _killed_from_outside(self) -> bool:
        """Whether the runtime itself was killed; a task can only end what is inside."""
        deadline = time.monotonic() + _DEATH_SECONDS
        while self._process.is_alive() and time.monotonic() < deadline:
            time.sleep(0.002)
        return not self._process.is_alive() and self._process.was_killed()

    def _read_line(
        self,
        deadline: float,
        words: bytearray | None = None,
        pump: tuple[int | None, CappedLog] | None = None,
    ) -> str | None:
        """Return the next word of the first process, "" at ``deadline``, None when the container is gone."""
        line = bytearray()
        watched: list[Any]
        while True:
            timeout = max(0.0, deadline - time.monotonic())
            watched = [self._control, *self._pipes.open()]
            ready = readable(watched, timeout)
            if not ready:
                return ""
            if pump is not None:
                self._pipes.carry(*pump)
            elif words is not None:
                words += self._pipes.words()
            if self._control in ready:
                try:
                    data = self._control.recv(1)
                except ConnectionResetError:
                    data = b""
                if not data:
                    return None
                if data == b"\n":
                    return line.decode(errors="replace")
                line += data
            elif time.monotonic() >= deadline:
                return ""

    def _processes(self) -> list[psutil.Process]:
        found: list[psutil.Process] = []
        # Its pid may be another's by now.
        if self._init.is_running():
            for pid in descendants(self._init.pid):
                with suppress(psutil.Error):
                    found.append(psutil.Process(pid))
        return found

    def _left_alive(self) -> int:
        """Processes of the task that live on: neither our shells nor zombies."""
        count = 0
        for process in self._processes():
            with suppress(psutil.Error):
                ours = process.pid in self._ours or process.cmdline() == SHELL
                if not ours and process.status() != psutil.STATUS_ZOMBIE:
                    count += 1
        return count

    def _find(self, pid: str) -> psutil.Process | None:
        """Return the process that the container numbers ``pid``; None where it has ended already."""
        return next((process for process in self._processes() if _inner_pid(process.pid) == pid), None)

    def _over_memory(self) -> bool:
        limit = self._limits.memory_mb
        return limit is not None and pss_bytes(self._processes()) > limit * 1024 * 1024

    def _over_storage(self) -> bool:
        limit = self._limits.storage_mb
        return limit is not None and self._storage_bytes is not None and self._storage_bytes() > limit * 1024 * 1024

    def kill(self) -> None:
        """SIGKILL every process of the container and wait until its mounts are gone."""
        self._dead = True
        with suppress(AttributeError, psutil.Error):
            self._init.kill()
        self._control.close()
        deadline = time.monotonic() + _DEATH_SECONDS
        while self._process.is_alive() and time.monotonic() < deadline:
            time.sleep(0.002)
        if self._process.is_alive() or self._killed_from_outside():
            # A runtime that ends in order takes its mount programs along; nobody does so for one that was killed.
            kill_session(self._process.pid)
            self._process.was_killed()

    def close(self) -> None:
        """Kill what runs and give back every descriptor."""
        self.kill()
        self._pipes.close()


def _is_dead(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE or not process.is_running()
    except psutil.NoSuchProcess:
        return True


def _inner_pid(pid: int) -> str:
    """Return a process's pid inside its innermost process namespace, "" for one in ours."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                pids = line.split()[1:]
                return pids[-1] if len(pids) > 1 else ""
    return ""
