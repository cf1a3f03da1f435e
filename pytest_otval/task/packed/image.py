"""Reading a squashfs 4.0 image piece by piece: a folder, an entry, a file; nothing of it is trusted.

Written out, since no library does this: those on PyPI read the whole tree at once, inflate without a bound, or have a
licence that cannot be ours, and unsquashfs itself writes what an image says. The format is that of the Linux kernel's
``fs/squashfs/squashfs_fs.h``; all numbers are little-endian.
"""

from __future__ import annotations

import lzma
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from pytest_otval.task.packed.unpack import MAX_BYTES, DamagedError, Kind

MAGIC = 0x73717368
METADATA_BYTES = 8192
MAX_BLOCK_BYTES = 1024 * 1024
MAX_FOLDER_BYTES = 64 * 1024 * 1024
"""Of a folder's listing: more than a million names."""
MAX_TARGET_BYTES = 4096

_SUPER = struct.Struct("<5I6H8Q")
_INODE_HEADER = struct.Struct("<4HII")
_FOLDER_HEADER = struct.Struct("<3I")
_FOLDER_ENTRY = struct.Struct("<HhHH")
_FRAGMENT = struct.Struct("<QII")
_FRAGMENTS_A_BLOCK = METADATA_BYTES // _FRAGMENT.size
_NO_FRAGMENT = 0xFFFFFFFF
_XZ_MEMORY = 256 * 1024 * 1024

_KINDS = (Kind.FOLDER, Kind.FILE, Kind.LINK, Kind.DEVICE, Kind.DEVICE, Kind.FIFO, Kind.SOCKET)
"""By type number, from 1 on; 8 to 14 are the same with more fields."""

Place = tuple[int, int]
"""Where an inode or a listing is: the start of its metadata block in the table, and the offset in that block."""


@dataclass(frozen=True, slots=True)
class Inode:
    """What an entry is."""

    kind: Kind
    mode: int
    """Permission bits, set-user-id, set-group-id and sticky bits."""
    owner: tuple[int, int] = (0, 0)
    """User and group."""
    mtime: int = 0
    """Seconds since the epoch."""
    target: bytes = b""
    device: int = 0
    """Major and minor number of a device."""
    listing: Place = (0, 0)
    listing_bytes: int = 0
    size: int = 0
    start: int = 0
    blocks: tuple[int, ...] = ()
    fragment: int = _NO_FRAGMENT
    fragment_offset: int = 0

    @property
    def executable(self) -> bool:
        """Whether its owner may run it."""
        return bool(self.mode & 0o100)


class Image:
    """An open image. Every method raises DamagedError for content that cannot be so."""

    def __init__(self, file: Path, largest: int | None = None) -> None:
        """No file in it may be larger than ``largest`` bytes, by default those of a whole task. Raises OSError too."""
        self._largest = MAX_BYTES if largest is None else largest
        self._descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._read_super()
        except BaseException:
            self.close()
            raise
        self._metadata_block = lru_cache(maxsize=256)(self._read_metadata_block)
        self._fragment_block = lru_cache(maxsize=8)(self._read_fragment_block)
        self._id = lru_cache(maxsize=256)(self._read_id)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _read_super(self) -> None:
        fields = _SUPER.unpack(self._bytes(0, _SUPER.size))
        magic, _, _, self._block_bytes, self._fragments = fields[:5]
        compressor, block_log, _, _, major, minor = fields[5:11]
        root, used, self._ids, _, self._inodes, self._folders, self._fragment_table, _ = fields[11:]
        if magic != MAGIC or (major, minor) != (4, 0):
            raise DamagedError("it is no squashfs 4.0 image")
        if not 4096 <= self._block_bytes <= MAX_BLOCK_BYTES or self._block_bytes != 1 << block_log:
            raise DamagedError("its header makes no sense")
        if used > os.fstat(self._descriptor).st_size:
            raise DamagedError("it is truncated")
        self._inflate = _decompressor(compressor)
        self._root: Place = root >> 16, root & 0xFFFF

    def root(self) -> Inode:
        """Return the top folder."""
        return self.inode(self._root)

    def inode(self, place: Place) -> Inode:
        """Return what lies at a place of the inode table."""
        reader = _Reader(self, self._inodes, place)
        number, mode, user, group, mtime, _ = reader.take(_INODE_HEADER)
        if not 1 <= number <= 14:
            raise DamagedError(f"an entry of type {number}")
        kind, extended = _KINDS[(number - 1) % 7], number > 7
        entry = Inode(kind, mode & 0o7777, (self._id(user), self._id(group)), mtime)
        if kind is Kind.FOLDER:
            if extended:
                _, size, block, _, _, offset, _ = reader.take(struct.Struct("<4IHHI"))
            else:
                block, _, size, offset, _ = reader.take(struct.Struct("<IIHHI"))
            return replace(entry, listing=(block, offset), listing_bytes=max(0, size - 3))
        if kind is Kind.FILE:
            return self._file(reader, entry, extended)
        if kind is Kind.LINK:
            _, size = reader.take(struct.Struct("<II"))
            if size > MAX_TARGET_BYTES:
                raise DamagedError(f"a link with a target of {size} bytes")
            return replace(entry, target=reader.bytes(size))
        if kind is Kind.DEVICE:
            _, device = reader.take(struct.Struct("<II"))
            return replace(entry, device=device)
        return entry

    def _file(self, reader: _Reader, entry: Inode, extended: bool) -> Inode:
        if extended:
            start, size, _, _, fragment, offset, _ = reader.take(struct.Struct("<3Q4I"))
        else:
            start, fragment, offset, size = reader.take(struct.Struct("<4I"))
        if size > self._largest:
            raise DamagedError(f"a file of {size} bytes")
        whole, rest = divmod(size, self._block_bytes)
        count = whole + (fragment == _NO_FRAGMENT and rest > 0)
        blocks = struct.unpack(f"<{count}I", reader.bytes(4 * count))
        return replace(entry, size=size, start=start, blocks=blocks, fragment=fragment, fragment_offset=offset)

    def _read_id(self, index: int) -> int:
        """Users and groups stand in a table of their own, to which a list of its blocks leads."""
        block, entry = divmod(index, METADATA_BYTES // 4)
        (table,) = struct.unpack("<Q", self._bytes(self._ids + 8 * block, 8))
        return _Reader(self, table, (0, entry * 4)).take(struct.Struct("<I"))[0]

    def listing(self, folder: Inode) -> Iterator[tuple[bytes, Place, Kind]]:
        """Yield name, place and kind of what is in a folder, in the order of the image, which is that of names."""
        if folder.listing_bytes > MAX_FOLDER_BYTES:
            raise DamagedError(f"a folder whose list has {folder.listing_bytes} bytes")
        reader = _Reader(self, self._folders, folder.listing)
        while reader.taken < folder.listing_bytes:
            count, block, _ = reader.take(_FOLDER_HEADER)
            if count > 255:
                raise DamagedError("a folder whose list makes no sense")
            for _ in range(count + 1):
                offset, _, number, length = reader.take(_FOLDER_ENTRY)
                if not 1 <= number <= 7:
                    raise DamagedError(f"an entry of type {number}")
                yield reader.bytes(length + 1), (block, offset), _KINDS[number - 1]

    def content(self, file: Inode) -> Iterator[bytes]:
        """Yield the bytes of a file, at most a block at once."""
        left, position = file.size, file.start
        for entry in file.blocks:
            wanted = min(left, self._block_bytes)
            stored = entry & 0xFFFFFF
            data = self._data_block(position, entry) if stored else bytes(wanted)
            if len(data) != wanted:
                raise DamagedError("a file's block has not the size that it should have")
            position += stored
            left -= wanted
            yield data
        if left:
            data = self._fragment_block(file.fragment)[file.fragment_offset : file.fragment_offset + left]
            if len(data) != left:
                raise DamagedError("a file's end lies outside of its fragment")
            yield data

    def _read_fragment_block(self, fragment: int) -> bytes:
        if fragment >= self._fragments:
            raise DamagedError(f"there is no fragment {fragment}")
        index, entry = divmod(fragment, _FRAGMENTS_A_BLOCK)
        (table,) = struct.unpack("<Q", self._bytes(self._fragment_table + 8 * index, 8))
        start, size, _ = _Reader(self, table, (0, entry * _FRAGMENT.size)).take(_FRAGMENT)
        return self._data_block(start, size)

    def _data_block(self, position: int, entry: int) -> bytes:
        """Return a block of data; ``entry`` has its stored size, and in bit 24 that it is not compressed."""
        stored = entry & 0xFFFFFF
        if stored > self._block_bytes or entry >> 25:
            raise DamagedError("a block that is too large")
        data = self._bytes(position, stored)
        return data if entry >> 24 else self._inflated(data, self._block_bytes)

    def _read_metadata_block(self, position: int) -> tuple[bytes, int]:
        """Return what a metadata block holds, and where the next one is."""
        (header,) = struct.unpack("<H", self._bytes(position, 2))
        stored = header & 0x7FFF
        if not 0 < stored <= METADATA_BYTES:
            raise DamagedError("a metadata block that makes no sense")
        data = self._bytes(position + 2, stored)
        return data if header >> 15 else self._inflated(data, METADATA_BYTES), position + 2 + stored

    def metadata_block(self, position: int) -> tuple[bytes, int]:
        """Return what a metadata block holds, and where the next one is; blocks read lately are kept."""
        return self._metadata_block(position)

    def _inflated(self, data: bytes, limit: int) -> bytes:
        try:
            plain = self._inflate(data, limit + 1)
        except Exception as error:
            raise DamagedError(f"a block that cannot be decompressed ({type(error).__name__})") from None
        if len(plain) > limit:
            raise DamagedError("a block that is larger than it may be")
        return plain

    def _bytes(self, position: int, count: int) -> bytes:
        if position >> 62:
            raise DamagedError("an offset that makes no sense")
        data = os.pread(self._descriptor, count, position)
        if len(data) != count:
            raise DamagedError("it ends too early")
        return data


class _Reader:
    """Reads on in a table, from one metadata block to the next."""

    def __init__(self, image: Image, table: int, place: Place) -> None:
        self._image = image
        self._offset = place[1]
        self._data, self._next = image.metadata_block(table + place[0])
        if self._offset > len(self._data):
            raise DamagedError("an offset that makes no sense")
        self.taken = 0

    def bytes(self, count: int) -> bytes:
        """Return the next bytes."""
        self.taken += count
        end = self._offset + count
        data = self._data[self._offset : end]
        while len(data) < count:
            self._data, self._next = self._image.metadata_block(self._next)
            end = count - len(data)
            data += self._data[:end]
        self._offset = min(end, len(self._data))
        return data

    def take(self, layout: struct.Struct) -> tuple[int, ...]:
        """Return the next numbers."""
        return layout.unpack(self.bytes(layout.size))


def _decompressor(number: int) -> Callable[[bytes, int], bytes]:
    """Return a function of compressed bytes and the most that may come of them."""
    if number == 1:
        return lambda data, limit: zlib.decompressobj().decompress(data, limit)
    if number == 4:
        return lambda data, limit: lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY).decompress(data, limit)
    if number == 6:
        from backports.zstd import ZstdDecompressor

        return lambda data, limit: ZstdDecompressor().decompress(data, limit)
    known = {2: "lzma", 3: "lzo", 5: "lz4"}
    raise DamagedError(f"its compression is {known.get(number, number)}; gzip, xz and zstd can be read")
