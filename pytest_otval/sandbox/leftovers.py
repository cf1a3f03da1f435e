"""A folder for each process that makes containers, and the end of what a killed one left.

``<scratch>/<pid>-<start>/`` holds the process's trials and builds; ``owner.json`` says who it is, ``sessions`` has a
line for each container, written before anything of a task runs. A later run sweeps the folders of dead owners: it
kills what is left of their sessions, then removes the folder.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

_OWNER, _SESSIONS, _KEPT = "owner.json", "sessions", "kept"
_NAME = re.compile(r"\d+-\d+")

KEPT_SECONDS = 24 * 3600
"""How long a folder stays that a user wanted to look at."""


class OwnScratch:
    """The folder of this process's writable layers."""

    def __init__(self, base: Path) -> None:
        me = os.getpid()
        self.folder = base / f"{me}-{start_ticks(me)}"
        self.folder.mkdir(mode=0o700, exist_ok=True)
        owner = {"pid": me, "start": start_ticks(me), "boot": boot_id()}
        (self.folder / _OWNER).write_text(json.dumps(owner))

    def new(self, prefix: str) -> Path:
        """Return a new empty folder."""
        return Path(tempfile.mkdtemp(dir=self.folder, prefix=f"{prefix}-"))

    def record(self, session: int) -> None:
        """Write down a session whose processes end with this process."""
        with suppress(OSError), (self.folder / _SESSIONS).open("a") as file:
            file.write(f"{session} {start_ticks(session)}\n")

    def keep(self) -> None:
        """Spare the folder for a day: a user wants to look at what is in it."""
        with suppress(OSError):
            (self.folder / _KEPT).touch()

    def close(self) -> None:
        """Remove the folder, if everything in it was removed before."""
        with suppress(OSError):
            if {entry.name for entry in self.folder.iterdir()} <= {_OWNER, _SESSIONS, _KEPT}:
                (self.folder / _KEPT).unlink(missing_ok=True)
                (self.folder / _SESSIONS).unlink(missing_ok=True)
                (self.folder / _OWNER).unlink(missing_ok=True)
                self.folder.rmdir()


def sweep(base: Path, remove: Callable[[Path], None]) -> list[str]:
    """Kill and remove what dead processes left below ``base``; return one line for each folder swept."""
    swept = []
    for folder in sorted(base.iterdir()):
        # Other folders, as that of staged images, are not a process's.
        if not _NAME.fullmatch(folder.name) or not folder.is_dir() or folder.is_symlink() or _alive(folder / _OWNER):
            continue
        killed = _kill_sessions(folder / _SESSIONS) if _same_boot(folder / _OWNER) else 0
        if _age(folder / _KEPT) < KEPT_SECONDS:
            continue
        with suppress(FileNotFoundError):
            # Others may sweep, too.
            remove(folder)
        swept.append(f"{folder.name}: {killed} processes killed, folder removed")
    return swept


def _age(path: Path) -> float:
    """Return the seconds since a file was made; infinite where there is none."""
    try:
        return time.time() - path.stat(follow_symlinks=False).st_mtime
    except OSError:
        return math.inf


def kill_session(session: int, start: int | None = None) -> int:
    """SIGKILL each process of a session, and return how many.

    ``start`` (clock ticks since the boot) is when its leader began: a leader that began at another time is another
    session, whose number was given anew. While a process of the old one lives, its number is not.
    """
    killed = 0
    with suppress(OSError):
        if start is not None and start_ticks(session) != start:
            return 0
    for pid in psutil.pids():
        with suppress(OSError, psutil.Error):
            if os.getsid(pid) == session:
                os.kill(pid, signal.SIGKILL)
                killed += 1
    return killed


def _kill_sessions(path: Path) -> int:
    killed = 0
    with suppress(OSError):
        for line in path.read_text().splitlines():
            with suppress(ValueError):
                session, start = line.split()
                killed += kill_session(int(session), int(start))
    return killed


def _read_owner(path: Path) -> dict[str, object]:
    try:
        owner = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return owner if isinstance(owner, dict) else {}


def _same_boot(path: Path) -> bool:
    return _read_owner(path).get("boot") == boot_id()


def _alive(path: Path) -> bool:
    owner = _read_owner(path)
    if not owner:
        # A process makes its folder before the file in it; the name says whose it is.
        pid, start = path.parent.name.split("-")
        return is_alive(int(pid), int(start))
    if owner.get("boot") != boot_id():
        return False
    try:
        return is_alive(int(str(owner["pid"])), int(str(owner["start"])))
    except (KeyError, ValueError):
        return False


def is_alive(pid: int, start: int) -> bool:
    """Whether the process that began at ``start`` still runs; one that nobody has waited for yet does not."""
    try:
        fields = _stat(pid)
    except OSError:
        return False
    return fields[0] not in (b"Z", b"X") and int(fields[19]) == start


def start_ticks(pid: int) -> int:
    """Return when a process began, in clock ticks since the boot; unlike a date it never moves with the clock.

    Raises OSError where there is no such process.
    """
    return int(_stat(pid)[19])


def _stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the third on (proc_pid_stat(5)).

    The name before them may hold anything, also brackets and blanks.
    """
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()


def boot_id() -> str:
    """Return the kernel's name for the time since the machine was started."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
