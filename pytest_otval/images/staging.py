"""Copies of images on a node's own disk, where the store lies on a file system of the network.

Each start of a container reads its image a few hundred pages at a time, which a shared file system answers slowly and
for all nodes at once. A file is copied once for all processes of a node, and its digest compared on the way, so that
one that was damaged in the store is found before anything runs on it. Where the disk has no room, the store's own
file is used.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil

from pytest_otval.core import Conclusion
from pytest_otval.images.locks import half_name, locked, sweep_half
from pytest_otval.images.model import Image
from pytest_otval.images.record import Record, image_path, read_record, record_path
from pytest_otval.profile import Profile
from pytest_otval.workspace import scratch

FOLDER = "staged-images"
"""In the node-local scratch of a user."""

UNUSED_SECONDS = 86400
"""A copy that nobody asked for so long goes at the start of a run."""

RECENT_SECONDS = 3600
"""A copy that was asked for within that time is not taken away to make room."""

FREE_PART, FREE_BYTES = 0.2, 50 << 30
"""What copies leave free of the disk for the writable layers of trials, whichever is less."""

BYTES_AN_ASK = 16 << 20
"""A file is copied once it was asked for so often that reading it from afar cost as much as copying it.

Measured at 50 MB/s: a trial's three containers lose 0.3 s by a remote image, in which 16 MiB are copied.
"""

_NETWORK = ("nfs", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb", "panfs", "wekafs", "fuse", "9p", "afs")
_BLOCK = 4 << 20


def is_remote(folder: Path) -> bool:
    """Whether a folder lies on a file system that is, by its name, not the node's own."""
    real = folder.resolve()
    mounts = {Path(mount.mountpoint): mount.fstype for mount in psutil.disk_partitions(all=True)}
    kind = next((mounts[place] for place in (real, *real.parents) if place in mounts), "")
    return kind.startswith(_NETWORK)


def staging_of(profile: Profile, store: Path) -> Staging | None:
    """Return where trials find copies of a store's images on this node; None where they run on the store's own."""
    wanted = profile.scratch.stage_images
    if wanted == "never" or (wanted == "auto" and not is_remote(store)):
        return None
    return Staging(scratch(profile.scratch.path))


class Staging:
    """The copies below a node-local folder."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is for all processes of one user on this node."""
        self._folder = folder / FOLDER
        self._asks: Counter[Path] = Counter()

    def staged(self, image: Image) -> Image:
        """Return an image of the store with the copies of its files, those that are worth it by now.

        Small files are copied at once, large ones where this process has asked for them often enough.

        Raises Conclusion ``base-unavailable`` where a file of the store is damaged; its record is gone by then, so
        that it is made anew.
        """
        return replace(image, files=tuple(self._copy(file) for file in image.files))

    def fetch(self, store: Path, key: str) -> bool:
        """Copy the file of one key now, if there is room; return whether a copy is there. Raises as ``staged``."""
        file = image_path(store, key)
        self._asks[file] = sys.maxsize // BYTES_AN_ASK
        return self._copy(file) != file

    def _copy(self, file: Path) -> Path:
        record = read_record(file.parent, file.stem)
        if record is None:
            return file
        # By its content, since an image that was damaged is made again under its key.
        copy = self._folder / f"{record.content}.sqfs"
        if _touched(copy, record.bytes):
            return copy
        try:
            self._asks[file] += 1
            if self._asks[file] * BYTES_AN_ASK < record.bytes:
                return file
            self._folder.mkdir(exist_ok=True)
            with locked(copy.with_suffix(".lock")):
                if _touched(copy, record.bytes):
                    return copy
                return self._copied(file, record, copy) if self._has_room(record.bytes) else file
        except OSError:
            # Whatever is wrong with this disk, the store's file serves as well.
            return file

    def _copied(self, file: Path, record: Record, copy: Path) -> Path:
        half, digest = half_name(copy), hashlib.sha256()
        try:
            with file.open("rb") as source, half.open("wb") as target:
                while block := source.read(_BLOCK):
                    digest.update(block)
                    target.write(block)
            if digest.hexdigest() != record.content:
                record_path(file.parent, record.key).unlink(missing_ok=True)
                raise Conclusion("base-unavailable", f"{file} is damaged: it is made anew when it is asked for again")
            half.replace(copy)
        finally:
            half.unlink(missing_ok=True)
        return copy

    def _has_room(self, size: int) -> bool:
        """Make room for a file, if there is none, by removing what was asked for longest ago."""
        copies = sorted(self._folder.glob("*.sqfs"), key=_asked)
        while True:
            disk = shutil.disk_usage(self._folder)
            if disk.free - size >= min(disk.total * FREE_PART, FREE_BYTES):
                return True
            if not copies or time.time() - _asked(copies[0]) < RECENT_SECONDS:
                return False
            copies.pop(0).unlink(missing_ok=True)


def sweep_staged(folder: Path) -> int:
    """Remove copies that nobody asked for in a day, and halves of killed processes; return how many files."""
    staged = folder / FOLDER
    old = [copy for copy in staged.glob("*.sqfs") if time.time() - _asked(copy) > UNUSED_SECONDS]
    for copy in old:
        copy.unlink(missing_ok=True)
    return len(old) + sweep_half(staged)


def _touched(copy: Path, size: int) -> bool:
    """Note that a copy is asked for, and whether it is there in its full size."""
    with suppress(OSError):
        os.utime(copy)
        return copy.stat().st_size == size
    return False


def _asked(copy: Path) -> float:
    with suppress(FileNotFoundError):
        return copy.stat().st_mtime
    return 0.0
