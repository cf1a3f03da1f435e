"""COPY --from: which files of another image, and as what they travel into the build's container.

Patterns and links are resolved within the image's own files, read from outside. As with BuildKit, what is copied keeps
its owner and mode unless the instruction says otherwise, a folder's contents are copied, and a link that is named is
followed (https://docs.docker.com/reference/dockerfile/#copy---from).
"""

from __future__ import annotations

import io
import posixpath
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import IO

from pytest_otval.images.copying import MAX_BYTES, CopyError, Member
from pytest_otval.images.lower import Lower, Node, path_parts
from pytest_otval.images.modes import changed_mode
from pytest_otval.task.context import has_wildcard
from pytest_otval.task.packed.unpack import Kind
from pytest_otval.task.patterns import copy_pattern

_MAX_DEPTH = 1000
_MAX_PARTS = 100
_TYPES: Mapping[Kind, bytes] = {
    Kind.FOLDER: tarfile.DIRTYPE,
    Kind.FILE: tarfile.REGTYPE,
    Kind.LINK: tarfile.SYMTYPE,
    Kind.FIFO: tarfile.FIFOTYPE,
}
"""Sockets and devices stay where they are: no user of a container may make a device."""


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that a COPY --from names."""

    name: str
    """Its name in a destination folder; "" for a folder, whose contents go there."""
    node: Node


def find_in_origin(lower: Lower, path: str) -> list[Found]:
    """Return what a path of a COPY --from names in an image; nothing where a pattern matches nothing.

    Raises CopyError where there is no such path, and OSError and DamagedError as ``lower`` does.
    """
    parts = path_parts(path)
    plain = next((number for number, part in enumerate(parts) if has_wildcard(part)), len(parts))
    if plain == len(parts):
        return [_found(lower, parts)]
    if len(parts) > _MAX_PARTS:
        raise CopyError(f"a pattern of more than {_MAX_PARTS} parts")
    folder = lower.follow(parts[:plain])
    if folder is None or folder[1].inode.kind is not Kind.FOLDER:
        raise CopyError(f"{'/' + '/'.join(parts[:plain])!r} is not in the image that --from names")
    return [_found(lower, [*folder[0], *below]) for below in _matching(lower, folder[1], parts[plain:])]


def origin_members(lower: Lower, found: Found, name: str, owner: tuple[int, int] | None, mode: str) -> Iterator[Member]:
    """Yield what was found, folders before what is in them; ``name`` is the name of a single file.

    Raises CopyError where it is too much; OSError and DamagedError as ``lower`` does.
    """
    room = MAX_BYTES
    todo = [(name, found.node)]
    if found.node.inode.kind is Kind.FOLDER:
        todo = _children(lower, "", found.node)[::-1]
    while todo:
        path, node = todo.pop()
        kind = node.inode.kind
        if kind not in _TYPES:
            continue
        room -= node.inode.size
        if room < 0:
            raise CopyError(f"more than the {MAX_BYTES >> 30} GiB that may be copied")
        header = _header(path, node, owner, mode)
        yield Member(header, partial(_content, lower, node) if kind is Kind.FILE else None)
        if kind is Kind.FOLDER:
            if path.count("/") > _MAX_DEPTH:
                raise CopyError(f"folders nested deeper than {_MAX_DEPTH}")
            todo += _children(lower, path, node)[::-1]


def _header(path: str, node: Node, owner: tuple[int, int] | None, mode: str) -> tarfile.TarInfo:
    inode = node.inode
    header = tarfile.TarInfo(path)
    header.type = _TYPES[inode.kind]
    header.uid, header.gid = owner or inode.owner
    header.mtime, header.size = inode.mtime, inode.size
    header.linkname = inode.target.decode(errors="surrogateescape")
    header.mode = inode.mode
    if mode and inode.kind is not Kind.LINK:
        header.mode = changed_mode(mode, inode.mode, inode.kind is Kind.FOLDER)
    return header


def _content(lower: Lower, node: Node) -> IO[bytes]:
    return io.BufferedReader(_Blocks(lower.content(node)))


class _Blocks(io.RawIOBase):
    """A file of blocks that come one by one."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # of any buffer
        if not self._left:
            self._left = next(self._blocks, b"")
        part = self._left[: len(buffer)]
        buffer[: len(part)] = part
        self._left = self._left[len(part) :]
        return len(part)


def _children(lower: Lower, path: str, folder: Node) -> list[tuple[str, Node]]:
    children = ((name, lower.child(folder, name)) for name in lower.names(folder))
    return [(posixpath.join(path, name), child) for name, child in children if child is not None]


def _found(lower: Lower, parts: list[str]) -> Found:
    followed = lower.follow(parts)
    if followed is None:
        raise CopyError(f"{'/' + '/'.join(parts)!r} is not in the image that --from names")
    node = followed[1]
    return Found("" if node.inode.kind is Kind.FOLDER else parts[-1], node)


def _matching(lower: Lower, folder: Node, patterns: list[str]) -> Iterator[list[str]]:
    """Yield what matches below a folder as parts of a path; links are not followed on the way."""
    try:
        matches = copy_pattern(patterns[0]).fullmatch
    except ValueError as error:
        raise CopyError(str(error)) from None
    for name in lower.names(folder):
        node = lower.child(folder, name) if matches(name) else None
        if node is None:
            continue
        if len(patterns) == 1:
            yield [name]
        elif node.inode.kind is Kind.FOLDER:
            for below in _matching(lower, node, patterns[1:]):
                yield [name, *below]
