"""So many at a time, of all processes of a user that share a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from tenacity import Retrying, retry_if_exception_type, wait_fixed

_POLL_SECONDS = 0.2


class Slots:
    """A number of slots; the kernel gives back those of a process that dies."""

    def __init__(self, folder: Path, name: str, count: int | None) -> None:
        """``folder`` is node-local; None slots are as many as anybody wants."""
        self._locks = None if count is None else [FileLock(folder / f"{name}-{number}.lock") for number in range(count)]

    @contextmanager
    def one(self) -> Iterator[None]:
        """Wait for a slot, and hold it."""
        if self._locks is None:
            yield
            return
        waiting = Retrying(retry=retry_if_exception_type(Timeout), wait=wait_fixed(_POLL_SECONDS))
        lock = waiting(self._free, self._locks)
        try:
            yield
        finally:
            lock.release()

    def _free(self, locks: list[FileLock]) -> FileLock:
        for lock in locks[:-1]:
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            return lock
        locks[-1].acquire(timeout=0)
        return locks[-1]
