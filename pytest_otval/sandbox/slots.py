"""So many at a time, of all processes of a user that share a folder."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential, wait_random_exponential
from tenacity.stop import stop_never

_FIRST_SECONDS, _POLL_SECONDS = 0.002, 0.05
"""Between two looks: at first, and at most."""


class Slots:
    """A number of slots; the kernel gives back those of a process that dies."""

    def __init__(self, folder: Path, name: str, count: int | None) -> None:
        """``folder`` is node-local; None slots are as many as anybody wants."""
        self.count = count
        self._locks = None if count is None else [FileLock(folder / f"{name}-{number}.lock") for number in range(count)]
        self._turn = FileLock(folder / f"{name}-turn.lock")

    @contextmanager
    def one(self, deadline: float | None = None) -> Iterator[None]:
        """Wait for a slot, and hold it. Raises TimeoutError where none is free at ``deadline`` (time.monotonic())."""
        if self._locks is None:
            yield
            return
        lock = self._taken(self._locks, deadline)
        try:
            yield
        finally:
            lock.release()

    def _taken(self, locks: Sequence[FileLock], deadline: float | None) -> FileLock:
        """One waiter at a time looks at all slots: hundreds that did would keep the machine busy with that alone."""

        def passed(state: RetryCallState) -> bool:
            return deadline is not None and time.monotonic() > deadline

        # With chance in it: who comes later must not be in step with those before, or it would never have its turn.
        pause = wait_random_exponential(_FIRST_SECONDS, max=2 * _POLL_SECONDS)
        stop = stop_never if deadline is None else passed
        waiting = Retrying(retry=retry_if_exception_type(Timeout), wait=pause, stop=stop, reraise=True)
        waiting(self._turn.acquire, timeout=0)
        try:
            return waiting.copy(wait=wait_exponential(_FIRST_SECONDS, max=_POLL_SECONDS))(_free, locks)
        finally:
            self._turn.release()


def _free(locks: Sequence[FileLock]) -> FileLock:
    """Return a slot that is taken now; the search begins anywhere, since the first ones are mostly held."""
    start = random.randrange(len(locks))
    for lock in (*locks[start:], *locks[:start]):
        with suppress(Timeout):
            lock.acquire(timeout=0)
            return lock
    raise Timeout(locks[start].lock_file)
