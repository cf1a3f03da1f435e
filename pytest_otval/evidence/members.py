"""One gzip member as a unit of an archive: written at its end, found and checked again.

Each member's header (RFC 1952) has an extra field ``OV`` with the member's length in bytes, 0 while it is being
written. So the end of what is whole is found by hopping from header to header, and only the last member has to be
unpacked to know that it is.
"""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, cast

_FIXED = b"\x1f\x8b\x08\x04" + bytes(4) + b"\x00\xff" + struct.pack("<H2sH", 12, b"OV", 8)
_HEADER = len(_FIXED) + 8
_LEAST = _HEADER + 8
_LEVEL = 6
_CHUNK = 1 << 18


class EvidenceError(Exception):
    """A place holds no evidence, or what it holds is damaged; the text says which and where."""


def write_member(handle: int, at: int, parts: Iterable[bytes]) -> int:
    """Write a member with the joined ``parts`` at an offset and return its length, once it is on the disk.

    Synchronised to the disk here: a network file system tells that it is full only then, and the ledger's line, which
    comes after, must not tell of evidence that is not there. Raises OSError; the file has then some bytes too many.
    """
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    checksum, size, end = 0, 0, _write(handle, at, _FIXED + bytes(8))
    for part in parts:
        checksum, size = zlib.crc32(part, checksum), size + len(part)
        end = _write(handle, end, packer.compress(part))
    end = _write(handle, end, packer.flush() + struct.pack("<II", checksum, size & 0xFFFFFFFF))
    _write(handle, at + len(_FIXED), struct.pack("<Q", end - at))
    os.fdatasync(handle)
    return end - at


def copy_member(path: Path, at: int, length: int, handle: int, end: int) -> int:
    """Copy a member of the archive at ``path`` as it is to an offset of another, and return its length.

    Only its header is looked at. Raises EvidenceError where there is none of that length, OSError.
    """
    source = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if _length(source, at, os.fstat(source).st_size) != length:
            raise EvidenceError(f"{path} has no entry of {length} bytes at {at}")
        part = _Slice(source, at, length)
        while data := part.read(_CHUNK):
            end = _write(handle, end, data)
    finally:
        os.close(source)
    return length


def _write(handle: int, at: int, data: bytes) -> int:
    """Write all of ``data`` and return the offset behind it."""
    view = memoryview(data)
    while view:
        written = os.pwrite(handle, view, at)
        view, at = view[written:], at + written
    return at


def may_append(handle: int) -> bool:
    """Whether the file is empty or begins as our archives do, so that what is torn in it may be cut off."""
    head = os.pread(handle, len(_FIXED), 0)
    return _FIXED.startswith(head)


def whole_end(handle: int) -> int:
    """Return the offset behind the last whole member of an archive."""
    size = os.fstat(handle).st_size
    last = end = 0
    while length := _length(handle, end, size):
        last, end = end, end + length
    return end if end == last or is_whole(handle, last, end - last) else last


def _length(handle: int, at: int, size: int) -> int:
    """Return the length of the member at an offset, 0 where there is none or its end is missing."""
    header = os.pread(handle, _HEADER, at)
    if len(header) < _HEADER or not header.startswith(_FIXED):
        return 0
    (length,) = struct.unpack("<Q", header[len(_FIXED) :])
    return int(length) if _LEAST <= length <= size - at else 0


def is_whole(handle: int, at: int, length: int) -> bool:
    """Whether a member's bytes are those that were written."""
    try:
        stream = open_member(handle, at, length)
        while stream.read(_CHUNK):
            pass
    except (OSError, EOFError, zlib.error):
        return False
    return True


def open_member(handle: int, at: int, length: int) -> gzip.GzipFile:
    """Return a stream of a member's content. Reading raises OSError, EOFError or zlib.error where it is damaged."""
    return gzip.GzipFile(fileobj=cast("IO[bytes]", _Slice(handle, at, length)), mode="rb")


class _Slice:
    """Part of a file, to be read once from its beginning; its position is its own."""

    def __init__(self, handle: int, at: int, length: int) -> None:
        self._handle = handle
        self._at = at
        self._end = at + length

    def read(self, size: int = -1) -> bytes:
        left = self._end - self._at
        data = os.pread(self._handle, left if size < 0 else min(size, left), self._at)
        self._at += len(data)
        return data
