"""COPY and ADD of local files: which files, by what rules, and as what archive they travel into the container."""

from __future__ import annotations

import hashlib
import io
import os
import posixpath
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

from pytest_otval.images.added import Compression, compression
from pytest_otval.images.modes import changed_mode
from pytest_otval.task.context import Context, Entry, has_wildcard

MAX_BYTES = 8 << 30
"""More than this in one instruction is refused: a sparse file of a terabyte would be read to its end."""


class CopyError(Exception):
    """A source that is not there or cannot be copied: one line."""


@dataclass(frozen=True, slots=True)
class Source:
    """One thing to copy."""

    name: str
    """Its name in a destination folder; "" where its contents go there."""
    entry: Entry | None
    """In the context; None for a here-document or an address."""
    inline: bytes = b""
    archive: Compression | None = None
    """ADD unpacks it: how it is compressed."""
    url: str = ""
    """ADD fetches it."""
    checksum: str = ""
    """sha256 of what is fetched, 64 hex digits."""


def find_sources(context: Context, word: str, unpack: bool) -> list[Source]:
    """Return what a source of a COPY (or, with ``unpack``, of an ADD) names: nothing where a pattern matches nothing.

    Raises CopyError.
    """
    if not has_wildcard(word):
        return [_source(context, context.find(word), posixpath.basename(posixpath.normpath(word)), word, unpack)]
    try:
        found = context.match(word)
    except ValueError as error:
        raise CopyError(str(error)) from None
    # As with a source without a wildcard, what a link points to is copied.
    return [
        _source(context, context.find(entry.path), posixpath.basename(entry.path), entry.path, unpack)
        for entry in found
    ]


def _source(context: Context, entry: Entry | None, name: str, word: str, unpack: bool) -> Source:
    if entry is None:
        raise CopyError(f"{word!r} is not in the build context, or .dockerignore leaves it out")
    if entry.kind == "folder":
        return Source("", entry)
    archive = None
    if unpack and entry.kind == "file":
        with opened(context, entry) as file:
            archive = compression(file)
    return Source(name if archive is None else "", entry, archive=archive)


def digest(context: Context, source: Source) -> list[Any]:
    """Return what of a source decides the image, in plain JSON types. Raises CopyError."""
    if source.entry is None:
        content = source.checksum or hashlib.sha256(source.inline).hexdigest()
        return [source.name, "fetched" if source.url else "file", False, content]
    rows = [_row(context, name, entry) for name, entry in _members(context, source)]
    return [source.name, source.archive, rows]


def total_bytes(context: Context, sources: Sequence[Source]) -> int:
    """Return the sum of the sizes of all files of the sources."""
    return sum(entry.size for source in sources if source.entry is not None for _, entry in _members(context, source))


@dataclass(frozen=True, slots=True)
class Member:
    """One file, folder or link on its way into an image."""

    header: tarfile.TarInfo
    open: Callable[[], IO[bytes]] | None
    """Gives a regular file's content. Raises CopyError."""

    def add_to(self, tar: tarfile.TarFile) -> None:
        """Append it to an archive. Raises CopyError."""
        if self.open is None:
            tar.addfile(self.header)
            return
        with self.open() as file:
            if file.seekable():
                # It may have changed since it was listed.
                self.header.size = file.seek(0, os.SEEK_END)
                file.seek(0)
            tar.addfile(self.header, file)


def members(context: Context, source: Source, name: str, owner: tuple[int, int], mode: str) -> Iterator[Member]:
    """Yield what a source holds, folders before what is in them; ``name`` is the name of a single file.

    Modes are 755 or 644 by the executable bit, so that equal keys are equal images whatever the umask at checkout.
    """
    if source.entry is None:
        entry = Entry(name, "file", False, len(source.inline), 0)
        yield Member(_header(name, entry, owner, mode), partial(io.BytesIO, source.inline))
        return
    for path, entry in _members(context, source):
        content = partial(opened, context, entry) if entry.kind == "file" else None
        yield Member(_header(path or name, entry, owner, mode), content)


def _members(context: Context, source: Source) -> Iterator[tuple[str, Entry]]:
    """Yield the files of a source with their paths below the destination; "" for the source itself."""
    assert source.entry is not None
    if source.entry.kind == "folder":
        yield from context.below(source.entry)
    else:
        yield "", source.entry


def _row(context: Context, name: str, entry: Entry) -> list[Any]:
    """Names may be no UTF-8; JSON escapes what stands for the odd bytes."""
    if entry.kind == "file":
        with opened(context, entry) as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        return [name, "file", entry.executable, content]
    return [name, entry.kind, entry.target]


def _header(name: str, entry: Entry, owner: tuple[int, int], mode: str) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.uid, header.gid = owner
    header.mtime = max(0, entry.mtime)
    header.type = {
        "file": tarfile.REGTYPE,
        "folder": tarfile.DIRTYPE,
        "link": tarfile.SYMTYPE,
        "fifo": tarfile.FIFOTYPE,
    }[entry.kind]
    header.linkname = entry.target
    header.size = entry.size
    is_folder = entry.kind == "folder"
    header.mode = 0o755 if entry.executable or is_folder else 0o644
    if mode and entry.kind != "link":
        header.mode = changed_mode(mode, header.mode, is_folder)
    return header


def opened(context: Context, entry: Entry) -> io.BufferedReader:
    """Open a regular file of the context. Raises CopyError."""
    try:
        return os.fdopen(context.open(entry), "rb")
    except OSError as error:
        raise CopyError(f"{entry.path}: {error.strerror or error}") from None
