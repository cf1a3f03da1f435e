"""Limits that are watched from outside: memory by proportional set size, cores by affinity, logs by length."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil


def cores(cpus: float | None, granted: Collection[int] | None) -> set[int]:
    """Return the cores a container is pinned to: as many of the granted ones as ``cpus``, rounded up.

    None is no limit: all granted ones; where none were granted, all of this process.
    """
    ours = sorted(os.sched_getaffinity(0) if granted is None else granted)
    return set(ours if cpus is None else ours[: max(1, math.ceil(cpus))])


@contextmanager
def pinned(cores: Collection[int]) -> Iterator[None]:
    """Pin this thread, and every process that it starts in the block, to some of its cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def pss_bytes(processes: Iterable[psutil.Process]) -> int:
    """Return the sum of the proportional set sizes; processes that end meanwhile count as 0."""
    total = 0
    for process in processes:
        try:
            rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_bytes()
        except OSError:
            continue
        for line in rollup.splitlines():
            if line.startswith(b"Pss:"):
                total += int(line.split()[1]) * 1024
                break
    return total


class CappedLog:
    """A file that keeps the first and the last half of what is written, and says how much it dropped."""

    def __init__(self, path: Path, cap: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("wb")
        self._head_left = cap // 2
        self._tail_cap = cap // 2
        self._tail = bytearray()
        self._dropped = 0

    def write(self, data: bytes) -> None:
        """Take the next bytes of output."""
        head = data[: self._head_left]
        if head:
            self._file.write(head)
            self._head_left -= len(head)
        self._tail += data[len(head) :]
        if len(self._tail) > 2 * self._tail_cap:
            self._trim()

    def _trim(self) -> None:
        surplus = len(self._tail) - self._tail_cap
        if surplus > 0:
            del self._tail[:surplus]
            self._dropped += surplus

    def close(self) -> None:
        """Write the kept tail."""
        self._trim()
        if self._dropped:
            self._file.write(f"\n[otval: {self._dropped} bytes left out here]\n".encode())
        self._file.write(self._tail)
        self._file.close()
