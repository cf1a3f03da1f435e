"""Writing the entries of one packed task. They are hostile: whatever they say, nothing is written outside the folder.

While files are written there is no link in the folder, so none can lead out of it: links are made at the end, and a
link itself may point anywhere, since nothing of ours follows it. All forms come through here.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pytest_otval.core import Conclusion

MAX_BYTES = 4 * 1024**3
"""Of all files of a task together, as they are written."""
MAX_ENTRIES = 100_000
"""Of a task, the folders around entries counted as well."""
MAX_PATH_BYTES = 1024
"""Of a path within the task: with a scratch folder before it, it must stay below the kernel's 4096."""
MAX_DEPTH = 64
"""The longest path in folders."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED_BY_KERNEL = (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL, errno.EEXIST)


class Kind(StrEnum):
    """What an entry is; the text is how a refusal calls it."""

    FILE = "a file"
    FOLDER = "a folder"
    LINK = "a link"
    HARD_LINK = "a hard link"
    FIFO = "a FIFO"
    SOCKET = "a socket"
    DEVICE = "a device"
    SPARSE = "a sparse file"
    UNKNOWN = "of an unknown type"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a task, as a packed file describes it."""

    path: bytes
    """Relative to the task, with ``/``; as hostile as all else."""
    kind: Kind
    executable: bool = False
    target: bytes = b""
    """Of a link what it says, of a hard link the other file's path within the task."""
    content: Callable[[], Iterator[bytes]] = lambda: iter(())
    """Of a file: its bytes, read when they are asked for, before the next entry is. Raises DamagedError."""


class DamagedError(Exception):
    """A packed file cannot be read on: truncated, corrupt, or made to be so. The text is one line."""


def unpack(entries: Iterable[Entry], folder: Path) -> None:
    """Write a task's entries to ``folder``, which is made new; nothing stays of a task that is refused.

    Raises Conclusion ``bad-task``, with one line that names the entry and the rule, and ``host-disk-full``.
    """
    shutil.rmtree(folder, ignore_errors=True)
    try:
        writer = _Writer(folder)
        for entry in entries:
            writer.write(entry)
        writer.finish()
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, DamagedError):
            raise Conclusion("bad-task", f"the packed task cannot be read: {error}") from None
        if isinstance(error, OSError) and error.errno in _FULL:
            raise Conclusion("host-disk-full", f"{folder.parent} is full: free some space or set OT_SCRATCH") from None
        raise


def shown(path: bytes) -> str:
    """Return a hostile path so that it fits into one line."""
    text = ascii(path.decode("utf-8", "backslashreplace"))[1:-1]
    return text if len(text) <= 120 else f"{text[:60]}...{text[-50:]}"


def split_path(path: bytes) -> list[bytes]:
    """Return the parts of a path, without those that say nothing."""
    return [part for part in path.split(b"/") if part not in (b"", b".")]


class Rules:
    """What holds for every packed task, so for what is packed too. Each method raises Conclusion ``bad-task``."""

    def __init__(self) -> None:
        self._entries_left = MAX_ENTRIES
        self._bytes_left = MAX_BYTES

    def checked(self, path: bytes, named: bytes) -> bytes:
        """Return a path in its one spelling, if it may be used at all; ``named`` is the entry that says it."""
        if path.startswith(b"/"):
            raise refusal(named, "has an absolute path")
        if b"\0" in path:
            raise refusal(named, "has a zero byte in its path")
        if len(path) > MAX_PATH_BYTES:
            raise refusal(named, f"has a path of more than {MAX_PATH_BYTES} bytes")
        parts = split_path(path)
        if b".." in parts:
            raise refusal(named, "has .. in its path")
        if len(parts) > MAX_DEPTH:
            raise refusal(named, f"lies more than {MAX_DEPTH} folders deep")
        return b"/".join(parts)

    def count_entry(self, named: bytes) -> None:
        """Count an entry."""
        self._entries_left -= 1
        if self._entries_left < 0:
            raise refusal(named, f"is one entry more than the {MAX_ENTRIES} that a task may have")

    def count_bytes(self, count: int, named: bytes) -> None:
        """Count bytes of a file."""
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise refusal(named, f"brings the task above {MAX_BYTES >> 30} GiB")


class _Writer:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o755, parents=True)
        folder.chmod(0o755)
        self._root = os.fsencode(folder)
        self._rules = Rules()
        self._made: dict[bytes, Kind] = {b"": Kind.FOLDER}
        self._implied: set[bytes] = {b""}
        """Folders that are there because something lies in them; their own entries may follow."""
        self._links: list[tuple[bytes, bytes]] = []

    def write(self, entry: Entry) -> None:
        path = self._rules.checked(entry.path, entry.path)
        if entry.kind is Kind.FOLDER and path in self._implied:
            self._implied.discard(path)
            return
        if path in self._made:
            raise refusal(entry.path, "occurs twice")
        self._make_parents(path, entry.path)
        self._note(path, entry.kind, entry.path)
        try:
            self._make(path, entry)
        except OSError as error:
            if error.errno not in _REFUSED_BY_KERNEL:
                raise
            raise refusal(entry.path, f"cannot be made: {error.strerror}") from None

    def finish(self) -> None:
        """Make the links, which from now on may lead anywhere."""
        for path, target in self._links:
            try:
                self._whole(path).symlink_to(os.fsdecode(target))
            except OSError as error:
                if error.errno in _FULL:
                    raise
                raise refusal(path, f"cannot be made: {error.strerror}") from None

    def _make(self, path: bytes, entry: Entry) -> None:
        whole = self._whole(path)
        if entry.kind is Kind.FOLDER:
            whole.mkdir()
            whole.chmod(0o755)
        elif entry.kind is Kind.FILE:
            self._write_file(whole, entry)
        elif entry.kind is Kind.FIFO:
            os.mkfifo(whole)
            whole.chmod(0o644)
        elif entry.kind is Kind.LINK:
            if not entry.target or b"\0" in entry.target:
                raise refusal(entry.path, "is a link to nothing")
            self._links.append((path, entry.target))
        elif entry.kind is Kind.HARD_LINK:
            other = b"/".join(split_path(entry.target))
            if entry.target.startswith(b"/") or self._made.get(other) is not Kind.FILE:
                raise refusal(entry.path, f"is a hard link to {shown(entry.target)}, which is no file before it")
            os.link(self._whole(other), whole, follow_symlinks=False)
            self._made[path] = Kind.FILE
        else:
            raise refusal(entry.path, f"is {entry.kind}, which a task cannot have")

    def _write_file(self, whole: Path, entry: Entry) -> None:
        descriptor = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            for chunk in entry.content():
                self._rules.count_bytes(len(chunk), entry.path)
                file.write(chunk)
            # Not left to open, so that the caller's umask does not count. Neither do set-uid bits.
            os.fchmod(file.fileno(), 0o755 if entry.executable else 0o644)

    def _make_parents(self, path: bytes, named: bytes) -> None:
        parts = path.split(b"/")
        for depth in range(1, len(parts)):
            above = b"/".join(parts[:depth])
            kind = self._made.get(above)
            if kind is None:
                self._note(above, Kind.FOLDER, named)
                self._make(above, Entry(above, Kind.FOLDER))
                self._implied.add(above)
            elif kind is not Kind.FOLDER:
                raise refusal(named, f"lies below {shown(above)}, which is {kind}")

    def _note(self, path: bytes, kind: Kind, named: bytes) -> None:
        self._rules.count_entry(named)
        self._made[path] = kind

    def _whole(self, path: bytes) -> Path:
        return Path(os.fsdecode(self._root + b"/" + path))


def refusal(path: bytes, rule: str) -> Conclusion:
    """Return the answer about a task with an entry that breaks a rule."""
    return Conclusion("bad-task", f"{shown(path)} {rule}")
