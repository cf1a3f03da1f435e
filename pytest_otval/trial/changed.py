"""What a phase changed in the file system of a trial, told from the writable layer by times that nobody can set.

A file's change time is the kernel's own. What is in the upper folder of the layer and changed after a phase began was
changed by the phase; the folders above a change, which the kernel copies up for it, say nothing and are left out.
"""

from __future__ import annotations

import posixpath
import re
import time
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from pytest_otval.images.changes import RUNTIMES
from pytest_otval.sandbox.base import UPPER, WHITEOUT, Sandbox

MAX_BYTES = 32 * 1024 * 1024
"""Of all paths together; what comes after that is not listed."""
MAX_CHANGES = 200_000
"""What comes after that is not listed either: a short path takes more memory here than bytes there."""
_MAX_PATH = 4096

OURS = re.compile(
    r"/(?:logs|tests|solution|setup_files|\.otval[^/]*)(?:/|$)|/(?:.*/)?\.wh\.\.(?:wh\.\.)?opq\Z", re.DOTALL
)
"""Mount points of a trial, and marks of fuse-overlayfs."""
_TICK = 0.02
"""Seconds: the kernel's clock for times of files goes in steps of up to 10 ms."""

Kind = Literal["file", "folder", "link", "other", "removed"]
_KINDS: dict[str, Kind] = {"f": "file", "d": "folder", "l": "link", "c": "removed"}


@dataclass(frozen=True, slots=True)
class Change:
    """One change."""

    kind: Kind
    """What is there now. A folder: it is new and empty, or its own mode, owner or list of names changed."""
    path: str
    """Absolute, as the container sees it. Hostile."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What was changed, by path."""

    found: tuple[Change, ...] = ()
    whole: bool = True
    """Whether these are all: paths that are too long, too many or not to be read are left out."""


class Moment:
    """The time from which changes count."""

    def __init__(self, file: Path) -> None:
        """``file`` is made, outside of the layer."""
        self._file = file
        file.write_bytes(b"")
        time.sleep(_TICK)

    def changes(self, sandbox: Sandbox, overlay: Path) -> Changes:
        """Return what was changed in a layer since, mounts and our own files left out; not ``whole`` where it fails."""
        listing = self._file.with_suffix(".changed")
        upper = overlay / UPPER
        if not upper.is_dir():
            return Changes()
        try:
            sandbox.touched(upper, self._file, listing, MAX_BYTES)
            return parse(listing.read_bytes(), listing.stat().st_size < MAX_BYTES)
        except OSError:
            # Such as a full disk. The trial has an answer of its own, which must not be lost for it.
            return Changes(whole=False)
        finally:
            listing.unlink(missing_ok=True)


def parse(listing: bytes, whole: bool = True) -> Changes:
    """Return the changes in a list as ``Sandbox.touched`` writes it; not ``whole``: it was cut."""
    entries = listing.split(b"\0", MAX_CHANGES)
    # Behind the last NUL is nothing, or what was cut or is too much.
    if b"\0" in entries.pop():
        whole = False
    found = []
    for entry in entries:
        if len(entry) > _MAX_PATH:
            whole = False
            continue
        kind, _, path = entry.decode(errors="surrogateescape").partition(" ")
        if kind == "!":
            whole = False
            continue
        change = _change(kind, f"/{path}")
        if change is not None:
            found.append(change)
    return Changes(tuple(_telling(found)), whole)


def _change(kind: str, path: str) -> Change | None:
    if RUNTIMES.match(path) or OURS.match(path):
        return None
    folder, name = posixpath.split(path)
    if name.startswith(WHITEOUT):
        return Change("removed", posixpath.join(folder, name.removeprefix(WHITEOUT)))
    return Change(_KINDS.get(kind, "other"), path)


def _telling(found: list[Change]) -> list[Change]:
    """Leave out folders above other changes, and put the others in order."""
    # In this order what is in a folder comes right behind it.
    found.sort(key=lambda change: (change.path.replace("/", "\0"), change.kind == "folder"))
    following = chain((change.path for change in found[1:]), ("",))
    return [
        change
        for change, behind in zip(found, following, strict=False)
        if change.kind != "folder" or not behind.startswith(f"{change.path}/")
    ]
