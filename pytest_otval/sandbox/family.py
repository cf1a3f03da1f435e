"""The processes below a process, without a look at all others of the machine."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import psutil


def descendants(pid: int) -> list[int]:
    """Return the pids below ``pid``, parents before their children; those that end meanwhile may be left out.

    The kernel lists children by thread (proc(5), ``/proc/PID/task/TID/children``) where it is built with
    CONFIG_PROC_CHILDREN. Elsewhere all processes of the machine are looked at.
    """
    if not _LISTED:
        with suppress(psutil.Error):
            return [process.pid for process in psutil.Process(pid).children(recursive=True)]
        return []
    found: dict[int, None] = {}
    left = [pid]
    while left:
        for child in _children(left.pop()):
            if child not in found:
                found[child] = None
                left.append(child)
    return list(found)


_LISTED = Path(f"/proc/self/task/{os.getpid()}/children").exists()


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            # It may have ended by now.
            with suppress(OSError):
                children += map(int, (thread / "children").read_bytes().split())
    return children
