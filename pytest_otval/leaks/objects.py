"""The objects of a git repository that lies in an image: loose and packed ones. Nothing of it is trusted.

Written out, since a reader for hostile repositories has to bound what it inflates: dulwich makes room for whatever size
a delta states, and its import alone costs 0.16 s. The formats are those of gitformat-pack(5); SHA-1 only.
"""

from __future__ import annotations

import mmap
import re
import tempfile
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from pytest_otval.images.contents import Contents
from pytest_otval.leaks.packs import DamagedObjectError, Delta, offsets

MAX_PACKS = 256 * 1024**2
"""Bytes of all packs together."""
MAX_OBJECTS = 200_000
MAX_OBJECT = 4 * 1024**2
"""Bytes of one object; what is larger is as if it were not there."""
MAX_INFLATED = 256 * 1024**2
"""Bytes of all objects that are looked at together."""
MAX_CHAIN = 200
"""Deltas over one object; git itself makes 50, or 250 where it is asked to."""
MAX_KEPT = 16 * 1024**2
"""Bytes of objects kept for the deltas over them."""

_NAME = re.compile(r"[0-9a-f]{40}")
_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_OFFSET_DELTA, _NAMED_DELTA = 6, 7


class TooLargeError(Exception):
    """The repository is larger than what is looked at; the text says by what."""


@dataclass(frozen=True, slots=True)
class _Packed:
    pack: int
    offset: int


class Objects:
    """The objects below one repository folder. Raises OSError and DamagedError of the image, and TooLargeError."""

    def __init__(self, contents: Contents, folder: str, scratch: Path) -> None:
        """Packs are copied to a file without a name in ``scratch``, which goes when this is closed."""
        self._contents = contents
        self._folder = f"{folder}/objects"
        self._scratch = scratch
        self._stack = ExitStack()
        self._packs: list[mmap.mmap] = []
        self._places: dict[str, str | _Packed] = {}
        self._kinds: dict[_Packed, str] = {}
        self._kept: OrderedDict[_Packed, tuple[str, bytes]] = OrderedDict()
        self._kept_bytes = 0
        self._left = MAX_INFLATED
        try:
            self._find_packs()
            self._find_loose()
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Objects:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def kind(self, name: str) -> str:
        """Return what an object is, without reading all of it; an empty text where that cannot be told."""
        place = self._places.get(name)
        try:
            if isinstance(place, str):
                return self._loose(place, head_only=True)[0]
            return "" if place is None else self._packed_kind(place)
        except (DamagedObjectError, zlib.error):
            return ""

    def read(self, name: str) -> tuple[str, bytes] | None:
        """Return kind and content of an object; None where it is missing, damaged or too large.

        Raises TooLargeError when too much was read.
        """
        place = self._places.get(name)
        if place is None:
            return None
        try:
            found = self._loose(place) if isinstance(place, str) else self._packed(place)
        except (DamagedObjectError, zlib.error):
            return None
        return found

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise TooLargeError(f"its objects have more than {MAX_INFLATED >> 20} MiB")

    def _add(self, name: str, place: str | _Packed) -> None:
        if len(self._places) >= MAX_OBJECTS:
            raise TooLargeError(f"it has more than {MAX_OBJECTS} objects")
        self._places[name] = place

    # --- loose objects

    def _find_loose(self) -> None:
        for number in range(256):
            folder = f"{number:02x}"
            for name in self._contents.names(f"{self._folder}/{folder}"):
                if _NAME.fullmatch(folder + name):
                    self._add(folder + name, f"{self._folder}/{folder}/{name}")

    def _loose(self, path: str, head_only: bool = False) -> tuple[str, bytes]:
        node = self._contents.file(path)
        if node is None or node.inode.size > MAX_OBJECT:
            raise DamagedObjectError
        inflater = zlib.decompressobj()
        raw = self._contents.read(node, 128 if head_only else MAX_OBJECT)
        start = inflater.decompress(raw, 64)
        head, sign, start = start.partition(b"\0")
        words = re.fullmatch(rb"(commit|tree|blob|tag) (\d{1,9})", head)
        if not sign or words is None:
            raise DamagedObjectError
        kind, size = words[1].decode(), int(words[2])
        if head_only:
            return kind, b""
        if size > MAX_OBJECT:
            raise DamagedObjectError
        self._spend(size)
        data = start + (inflater.decompress(inflater.unconsumed_tail, size + 1) if size >= len(start) else b"")
        if len(data) != size:
            raise DamagedObjectError
        return kind, data

    # --- packs

    def _find_packs(self) -> None:
        total = 0
        for name in self._contents.names(f"{self._folder}/pack"):
            index = self._contents.file(f"{self._folder}/pack/{name}") if name.endswith(".idx") else None
            pack = self._contents.file(f"{self._folder}/pack/{name[:-4]}.pack") if index is not None else None
            if index is None or pack is None or not pack.inode.size:
                continue
            total += pack.inode.size + index.inode.size
            if total > MAX_PACKS:
                raise TooLargeError(f"its packs have more than {MAX_PACKS >> 20} MiB")
            listed = offsets(self._contents.read(index, index.inode.size))
            with tempfile.TemporaryFile(dir=self._scratch) as copy:
                for block in self._contents.content(pack):
                    copy.write(block)
                copy.flush()
                self._packs.append(self._stack.enter_context(mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ)))
            for object, offset in listed:
                self._add(object, _Packed(len(self._packs) - 1, offset))

    def _packed_kind(self, place: _Packed) -> str:
        above: list[_Packed] = []
        while place not in self._kinds:
            kind, _, _, below = self._header(place)
            above.append(place)
            if below is None:
                self._kinds[place] = kind
            elif len(above) > MAX_CHAIN:
                raise DamagedObjectError
            else:
                place = below
        for one in above:
            self._kinds[one] = self._kinds[place]
        return self._kinds[place]

    def _packed(self, place: _Packed) -> tuple[str, bytes]:
        deltas: list[tuple[_Packed, bytes]] = []
        while (found := self._kept.get(place)) is None:
            kind, size, position, below = self._header(place)
            data = self._inflated(place, position, size)
            if below is None:
                found = kind, data
                break
            deltas.append((place, data))
            if len(deltas) > MAX_CHAIN:
                raise DamagedObjectError
            place = below
        kind, data = found
        for one, delta in reversed(deltas):
            self._keep(place, kind, data)
            place, data = one, self._applied(data, delta)
        self._keep(place, kind, data)
        return kind, data

    def _keep(self, place: _Packed, kind: str, data: bytes) -> None:
        if place in self._kept:
            self._kept.move_to_end(place)
            return
        self._kept[place] = kind, data
        self._kept_bytes += len(data)
        while self._kept_bytes > MAX_KEPT:
            self._kept_bytes -= len(self._kept.popitem(last=False)[1][1])

    def _header(self, place: _Packed) -> tuple[str, int, int, _Packed | None]:
        """Return kind and size of an entry, where its data begins, and what it is a delta over."""
        pack, position = self._packs[place.pack], place.offset
        try:
            byte = pack[position]
            number, size, shift = byte >> 4 & 7, byte & 15, 4
            while byte & 128:
                position += 1
                byte = pack[position]
                size |= (byte & 127) << shift
                shift += 7
                if shift > 63:
                    raise DamagedObjectError
            position += 1
            if size > MAX_OBJECT:
                raise DamagedObjectError
            if number == _NAMED_DELTA:
                below = self._places.get(pack[position : position + 20].hex())
                if not isinstance(below, _Packed):
                    raise DamagedObjectError
                return "", size, position + 20, below
            if number != _OFFSET_DELTA:
                return _KINDS[number], size, position, None
            byte = pack[position]
            back = byte & 127
            while byte & 128:
                position += 1
                byte = pack[position]
                back = (back + 1 << 7) | byte & 127
                if back > place.offset:
                    raise DamagedObjectError
        except (IndexError, KeyError):
            raise DamagedObjectError from None
        if not 0 < back <= place.offset:
            raise DamagedObjectError
        return "", size, position + 1, _Packed(place.pack, place.offset - back)

    def _inflated(self, place: _Packed, position: int, size: int) -> bytes:
        self._spend(size)
        # What does not compress grows a little.
        raw = self._packs[place.pack][position : position + size + size // 512 + 64]
        data = zlib.decompressobj().decompress(raw, size + 1)
        if len(data) != size:
            raise DamagedObjectError
        return data

    def _applied(self, base: bytes, delta: bytes) -> bytes:
        reader = Delta(delta)
        before, size = reader.size(), reader.size()
        if before != len(base) or size > MAX_OBJECT:
            raise DamagedObjectError
        self._spend(size)
        pieces, length = [], 0
        for piece in reader.pieces(base):
            length += len(piece)
            if length > size:
                raise DamagedObjectError
            pieces.append(piece)
        if length != size:
            raise DamagedObjectError
        return b"".join(pieces)
