"""Parts of git's packs: deltas, and the index that says where objects lie; see ``objects``."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_INDEX_MAGIC = b"\xfftOc\0\0\0\2"


class DamagedObjectError(Exception):
    """An object cannot be read."""


class Delta:
    """What makes an object of the one below it. Every method raises DamagedObjectError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def _byte(self) -> int:
        if self._position >= len(self._data):
            raise DamagedObjectError
        self._position += 1
        return self._data[self._position - 1]

    def size(self) -> int:
        """Return the next number of seven bits a byte."""
        value = shift = 0
        while shift < 64:
            byte = self._byte()
            value |= (byte & 127) << shift
            if not byte & 128:
                return value
            shift += 7
        raise DamagedObjectError

    def pieces(self, base: bytes) -> Iterator[bytes]:
        """Yield what the instructions copy and insert."""
        while self._position < len(self._data):
            byte = self._byte()
            if byte & 128:
                start = sum(self._byte() << 8 * bit for bit in range(4) if byte >> bit & 1)
                count = sum(self._byte() << 8 * bit for bit in range(3) if byte >> 4 + bit & 1) or 0x10000
                if start + count > len(base):
                    raise DamagedObjectError
                yield base[start : start + count]
            else:
                piece = self._data[self._position : self._position + byte]
                if not byte or len(piece) != byte:
                    raise DamagedObjectError
                self._position += byte
                yield piece


def offsets(index: bytes) -> Iterator[tuple[str, int]]:
    """Yield names and offsets that an index of version 2 lists; nothing for any other."""
    if not index.startswith(_INDEX_MAGIC) or len(index) < 1032:
        return
    (count,) = struct.unpack_from(">I", index, 1028)
    names, small = 1032, 1032 + count * 24
    if len(index) < small + count * 4 + 40:
        return
    large = small + count * 4
    for number in range(count):
        (offset,) = struct.unpack_from(">I", index, small + number * 4)
        if offset >> 31:
            place = large + (offset & 0x7FFFFFFF) * 8
            if place + 8 > len(index):
                continue
            (offset,) = struct.unpack_from(">Q", index, place)
        yield index[names + number * 20 : names + number * 20 + 20].hex(), offset
