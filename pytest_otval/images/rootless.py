"""Packing what a runtime unpacked for an ordinary user, with the owners that its files have in the image.

Apptainer unpacks layers with umoci (https://umo.ci), which leaves all files to the user who runs it and notes in the
extended attribute ``user.rootlesscontainers`` whose they are (https://github.com/rootless-containers/proto). Apptainer
itself forgets the notes when it packs, so that even a user with subordinate uids would get an image of root's alone.
"""

from __future__ import annotations

import errno
import os
import tarfile
from contextlib import suppress
from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.images.pack import packing

_NOTE = "user.rootlesscontainers"
_UNCHANGED = 0xFFFFFFFF


def require_notes(folder: Path) -> None:
    """Raise Conclusion ``base-unavailable`` where a folder's file system could not keep the notes."""
    try:
        os.setxattr(folder, _NOTE, b"")
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        words = f"the file system of {folder.parent} has no extended attributes, so owners would be lost"
        raise Conclusion("base-unavailable", f"{words}: set OT_SCRATCH to a folder on another one") from None


def pack_rootless(folder: Path, target: Path) -> None:
    """Pack an unpacked image as a squashfs; modes in ``folder`` may change. Raises PackError, Conclusion, OSError."""
    with (
        packing(target, all_root=False) as stream,
        os.fdopen(os.dup(stream), "wb") as out,
        tarfile.open(
            fileobj=out, mode="w|", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
        ) as tar,
    ):
        waiting = [(folder, "")]
        while waiting:
            above, prefix = waiting.pop()
            for entry in sorted(os.scandir(above), key=lambda entry: entry.name):
                if _add(tar, above / entry.name, prefix + entry.name):
                    waiting.append((above / entry.name, f"{prefix}{entry.name}/"))


def _add(tar: tarfile.TarFile, path: Path, name: str) -> bool:
    """Add one entry; return whether it is a folder."""
    info = tar.gettarinfo(path, name)
    if info is None:
        return False
    if not info.issym():
        # A note is read like the file itself, which its user need not be able to do.
        path.chmod(info.mode | (0o700 if info.isdir() else 0o400))
    info.uid, info.gid = (0, 0) if info.issym() else _owner(path)
    info.uname = info.gname = ""
    if info.isreg():
        with path.open("rb") as file:
            tar.addfile(info, file)
    else:
        tar.addfile(info)
    return info.isdir()


def _owner(path: Path) -> tuple[int, int]:
    """Return uid and gid by a file's note; what has none is root's."""
    with suppress(OSError):
        fields = _numbers(os.getxattr(path, _NOTE, follow_symlinks=False))
        uid, gid = fields.get(1, 0), fields.get(2, 0)
        return (0 if uid == _UNCHANGED else uid), (0 if gid == _UNCHANGED else gid)
    return 0, 0


def _numbers(data: bytes) -> dict[int, int]:
    """Return the fields of a protobuf message of numbers alone: https://protobuf.dev/programming-guides/encoding."""
    values: list[int] = []
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            values.append(value)
            value = shift = 0
    return {tag >> 3: number for tag, number in zip(values[::2], values[1::2], strict=False)}
