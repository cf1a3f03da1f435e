"""Reading a tar archive that may be made to harm: through the standard library, whose reads are watched.

``tarfile`` takes a damaged header for the end of an archive, reads extended headers of any size into memory, and lets
errors of many kinds through. Here an archive ends with a block of zeros, and all else is a ``DamagedError``.
"""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, cast

from pytest_otval.core import Conclusion
from pytest_otval.task.packed.unpack import MAX_BYTES, MAX_ENTRIES, DamagedError, Entry, Kind, split_path

MAX_TAR_BYTES = MAX_BYTES + MAX_ENTRIES * 4 * tarfile.BLOCKSIZE
"""Of a task's own archive, once it is no longer compressed."""

CHUNK = 1024 * 1024
"""The largest piece that is read at once; no extended header comes near it."""

GZIP_MAGIC = b"\x1f\x8b"
TAR_MAGIC, TAR_MAGIC_AT = b"ustar", 257
"""What POSIX and GNU tar write into each header, and where."""
HARMLESS_GLOBALS = {"comment"}
"""git archive writes the commit there."""

_ZEROS = bytes(tarfile.BLOCKSIZE)
_READS_AT_END = 16

_KINDS = {
    tarfile.REGTYPE: Kind.FILE,
    tarfile.AREGTYPE: Kind.FILE,
    tarfile.CONTTYPE: Kind.FILE,
    tarfile.DIRTYPE: Kind.FOLDER,
    tarfile.SYMTYPE: Kind.LINK,
    tarfile.LNKTYPE: Kind.HARD_LINK,
    tarfile.FIFOTYPE: Kind.FIFO,
    tarfile.CHRTYPE: Kind.DEVICE,
    tarfile.BLKTYPE: Kind.DEVICE,
    tarfile.GNUTYPE_SPARSE: Kind.SPARSE,
}


class _Watched:
    """What ``tarfile`` needs of a file, with bounds."""

    def __init__(self, file: BinaryIO, limit: int | None) -> None:
        self._file = file
        self._limit = limit
        self._empty_reads = 0
        self.last = b""
        """What was read last."""

    def read(self, size: int) -> bytes:
        if not 0 <= size <= CHUNK:
            raise DamagedError(f"a header of {size} bytes")
        self.last = data = self._file.read(size)
        if self._limit is not None and self._file.tell() > self._limit:
            raise Conclusion("bad-task", f"the packed task is larger than {self._limit >> 30} GiB")
        # Some of tarfile's loops do not notice the end.
        self._empty_reads = 0 if data or not size else self._empty_reads + 1
        if self._empty_reads > _READS_AT_END:
            raise DamagedError("it ends too early")
        return data

    def seek(self, position: int) -> int:
        if self._limit is not None and position > self._limit:
            raise Conclusion("bad-task", f"the packed task is larger than {self._limit >> 30} GiB")
        return self._file.seek(position)

    def tell(self) -> int:
        return self._file.tell()


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an archive."""

    name: bytes
    info: tarfile.TarInfo
    start: int
    """Where its first header is."""
    end: int
    """Where the next member's is."""
    watched: _Watched

    @property
    def kind(self) -> Kind:
        """What it is."""
        return Kind.SPARSE if self.info.issparse() else _KINDS.get(self.info.type, Kind.UNKNOWN)

    def content(self) -> Iterator[bytes]:
        """Yield its bytes. Raises DamagedError."""
        left = self.info.size
        with _as_damage():
            self.watched.seek(self.info.offset_data)
            while left:
                chunk = self.watched.read(min(left, CHUNK))
                if not chunk:
                    raise DamagedError("it ends within a file")
                left -= len(chunk)
                yield chunk

    def entry(self, top: bytes = b"") -> Entry:
        """Return it as an entry of its task, which is the folder ``top``."""
        kind = self.kind
        target = raw(self.info.linkname)
        if kind is Kind.HARD_LINK:
            target = _below(top, target)
        return Entry(_below(top, self.name), kind, bool(self.info.mode & 0o100), target, self.content)


def raw(name: str) -> bytes:
    """Return the bytes of a name as they stand in the archive."""
    return name.encode("utf-8", "surrogateescape")


def _below(top: bytes, path: bytes) -> bytes:
    """Return a path as it is seen from the folder ``top``; one that leads out stays recognisable as such."""
    parts = split_path(path)
    if not top or not parts or path.startswith(b"/"):
        return path
    return b"/".join(parts[1:] if parts[0] == top else [b"..", *parts])


def members(file: BinaryIO, start: int = 0, end: int | None = None, limit: int | None = None) -> Iterator[Member]:
    """Yield the members from byte ``start`` to byte ``end``, else to the end of the archive; contents are skipped.

    ``limit`` bounds the archive's bytes. Raises DamagedError, and Conclusion ``bad-task`` for what is too large.
    """
    watched = _Watched(file, limit)
    with _as_damage():
        watched.seek(start)
        archive = tarfile.TarFile(fileobj=cast("BinaryIO", watched), encoding="utf-8", errors="surrogateescape")
        before = start
        while (info := archive.next()) is not None:
            # It keeps all it has seen.
            archive.members.clear()  # type: ignore[attr-defined]
            if info.size < 0 or archive.offset <= before:
                raise DamagedError("a header leads backwards")
            if not archive.pax_headers.keys() <= HARMLESS_GLOBALS:
                raise DamagedError("it has headers for all members")
            before = archive.offset
            yield Member(raw(info.name), info, info.offset, archive.offset, watched)
            if end is not None and archive.offset >= end:
                return
        if watched.last != _ZEROS:
            raise DamagedError("a header is damaged, or the end is missing")


def task_entries(file: BinaryIO, task: str) -> Iterator[Entry]:
    """Yield the entries of an archive of one task: relative to the task, or all below one folder of its name.

    The archive may be compressed with gzip. Raises DamagedError, and Conclusion ``bad-task``.
    """
    # What lies where is known only at the end: a task may have a folder of its own name.
    top = raw(task) if _is_below(_plain(file), raw(task)) else b""
    for member in members(_plain(file), limit=MAX_TAR_BYTES):
        yield member.entry(top)


def _plain(file: BinaryIO) -> BinaryIO:
    file.seek(0)
    begin = file.read(TAR_MAGIC_AT + len(TAR_MAGIC))
    file.seek(0)
    # A tar begins with the name of its first member, which may be that of gzip.
    compressed = begin.startswith(GZIP_MAGIC) and begin[TAR_MAGIC_AT:] != TAR_MAGIC
    return cast("BinaryIO", gzip.GzipFile(fileobj=file)) if compressed else file


def _is_below(file: BinaryIO, name: bytes) -> bool:
    """Whether all members are the folder ``name`` and what is in it; reads to the end, where gzip has its checksum."""
    below = True
    for count, member in enumerate(members(file, limit=MAX_TAR_BYTES)):
        if count > MAX_ENTRIES:
            raise Conclusion("bad-task", f"the packed task has more than {MAX_ENTRIES} entries")
        parts = split_path(member.name)
        outside = member.name.startswith(b"/") or parts[:1] not in ([], [name])
        below = below and not outside and (len(parts) != 1 or member.kind is Kind.FOLDER)
    rest = _Watched(file, MAX_TAR_BYTES)
    with _as_damage():
        while rest.read(CHUNK):
            pass
    return below


@contextmanager
def _as_damage() -> Iterator[None]:
    """Turn whatever ``tarfile`` and the decompressors raise into DamagedError; errors of the host stay."""
    try:
        yield
    except (Conclusion, DamagedError):
        raise
    except OSError as error:
        if error.errno is not None:
            raise
        raise DamagedError(_one_line(error)) from None
    except Exception as error:
        raise DamagedError(_one_line(error)) from None


def _one_line(error: Exception) -> str:
    text = " ".join(ascii(str(error))[1:-1].split())
    return f"{type(error).__name__}: {text[:120]}" if text else type(error).__name__
