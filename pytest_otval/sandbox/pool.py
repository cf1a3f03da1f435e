"""Who holds what of a node, and who waits: one small file, shared by all processes of a user.

Each change is made under the kernel's lock on a second file and replaces the file as a whole, so a process may be
killed anywhere. What a dead process held or waited for is dropped by whoever looks next.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pytest_otval.core import Conclusion
from pytest_otval.sandbox.leftovers import boot_id, is_alive


@dataclass(slots=True)
class Entry:
    """What one task has asked for, in the order of tickets, and holds once it is granted."""

    ticket: int
    pid: int
    start: int
    """Of the process, in clock ticks since the boot."""
    cores: int
    memory_mb: int
    gpus: int
    share: int = 1
    """How many that say so may hold a core together."""
    lasting: bool = False
    """Whether nobody should wait for its end."""
    granted: bool = False
    held_cores: list[int] = field(default_factory=list)
    held_gpus: list[int] = field(default_factory=list)


@dataclass(slots=True)
class State:
    """The content of the file."""

    next_ticket: int = 0
    entries: list[Entry] = field(default_factory=list)

    def entry(self, ticket: int) -> Entry | None:
        """Return the entry of a ticket."""
        return next((entry for entry in self.entries if entry.ticket == ticket), None)


class Pool:
    """The file ``path``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._boot = boot_id()

    @contextmanager
    def changed(self) -> Iterator[State]:
        """Lock the file and give what it says, without the dead; what was changed in the block is written.

        Raises Conclusion ``host-disk-full``, or ``no-start`` where the file cannot be written at all.
        """
        try:
            with self._locked():
                before = self._read()
                alive = [entry for entry in before.entries if is_alive(entry.pid, entry.start)]
                state = State(before.next_ticket, alive)
                old = self._text(before)
                yield state
                new = self._text(state)
                if new != old:
                    self._write(new, old)
        except OSError as error:
            where = self._path.parent
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise Conclusion("host-disk-full", f"the scratch {where} is full: free some space") from None
            why = f"the scratch {where} cannot be used: {error.strerror}"
            raise Conclusion("no-start", f"{why}: set OT_SCRATCH to a folder of your own on this node") from None

    def version(self) -> tuple[int, int] | None:
        """Return what changes with the file, without waiting for the lock."""
        try:
            facts = self._path.stat()
        except OSError:
            return None
        return facts.st_ino, facts.st_mtime_ns

    @contextmanager
    def _locked(self) -> Iterator[None]:
        handle = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            # A child that was just forked shares the lock until it execs: closing alone would leave it locked.
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)

    def _read(self) -> State:
        """A file that is damaged, or of another boot, tells nothing."""
        try:
            values: dict[str, Any] = json.loads(self._path.read_bytes())
            if values["boot"] == self._boot:
                return State(int(values["next_ticket"]), [_entry(entry) for entry in values["entries"]])
        except (AttributeError, FileNotFoundError, KeyError, TypeError, ValueError):
            pass
        return State()

    def _text(self, state: State) -> bytes:
        return json.dumps({"boot": self._boot, **asdict(state)}).encode()

    def _write(self, new: bytes, old: bytes) -> None:
        work = self._path.with_suffix(".new")
        try:
            work.write_bytes(new)
            work.replace(self._path)
        except OSError:
            # On a full disk what is given back must not stay held: a shorter text takes the old one's place.
            if len(new) > len(old) or not self._path.is_file():
                raise
            with self._path.open("r+b", buffering=0) as file:
                file.write(new.ljust(len(old)))


def _entry(values: dict[str, Any]) -> Entry:
    """Return an entry; another version of ours that runs on the node may know more of it."""
    return Entry(**{name: value for name, value in values.items() if name in Entry.__slots__})
