"""What the steps of a build changed in an image, told from the merged view and the files below it.

Not from the writable layer's own folder: kernels and fuse-overlayfs note removed files there in different ways. A file
that was touched in any way has a new change time, while one of a squashfs has its time of modification, the only one
that a squashfs keeps. What was removed becomes a whiteout as the kernel documents them, a character device 0:0
(https://docs.kernel.org/filesystems/overlayfs.html#whiteouts-and-opaque-directories), which fuse-overlayfs reads too.
"""

from __future__ import annotations

import re
import stat
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.images.lower import Lower, Node
from pytest_otval.images.steps import BUILD_FOLDER
from pytest_otval.sandbox.base import TOOLBOX
from pytest_otval.task.packed.unpack import Kind

NAMES = "changed"
RUNTIMES = re.compile(r"/(?:\.otval|\.otval-build|\.singularity\.d|proc|sys|dev|etc/resolv\.conf|etc/hostname)(?:/|$)")
"""What a container runtime mounts, and no image holds. resolv.conf and hostname tell of the host."""

LIST = f"""
B={TOOLBOX}/busybox
cd / && set --
for entry in * .[!.]* ..?*; do
  case $entry in .otval|.otval-build|.singularity.d|proc|sys|dev) continue ;; esac
  [ -e "$entry" ] || [ -L "$entry" ] || continue
  set -- "$@" "./$entry"
done
exec $B find "$@" -xdev -exec $B stat -c '%f %Z %n' {{}} +
"""
"""Lists the merged view, folders before what is in them."""

SEND = f"""
B={TOOLBOX}/busybox
cd / && exec $B xargs -0 -r $B sh -c '
  set -o pipefail
  $0 tar -c --numeric-owner --no-recursion -- "$@" | $0 head -c -1024
' $B < {BUILD_FOLDER}/{NAMES}
"""
"""Writes an archive of the paths in ``NAMES``, each ended by a NUL, without the two blocks that end an archive."""

_LINE = re.compile(r"([0-9a-f]+) (\d+) \.(/.*)", re.DOTALL)


class UnclearError(Exception):
    """The list cannot be read: a name with a line end."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Paths below the root, without a slash in front."""

    changed: tuple[str, ...]
    """New or touched, folders before what is in them."""
    removed: tuple[str, ...]
    """Of what is in a removed folder only the folder."""


def changes(listing: Iterable[str], lower: Lower, since: int) -> Changes:
    """Return what differs between a list that ``LIST`` wrote and an image's files.

    ``since`` is when the steps began, in seconds since the epoch: a file of the image that is not older might have
    been touched in the same second, and counts as changed. Raises UnclearError, DamagedError, OSError.
    """
    changed, seen, folders = [], set[str](), set[str]()
    nodes: dict[str, Node | None] = {"": lower.root()}
    for line in listing:
        match = _LINE.fullmatch(line.removesuffix("\n"))
        if match is None:
            raise UnclearError(line)
        mode, touched, path = int(match[1], 16), int(match[2]), match[3]
        if RUNTIMES.match(path) or stat.S_ISSOCK(mode):
            continue
        seen.add(path)
        if stat.S_ISDIR(mode):
            folders.add(path)
        node = _node(lower, nodes, path)
        if node is None or touched != node.inode.mtime or touched >= since:
            changed.append(path[1:])
    return Changes(tuple(changed), tuple(_removed(lower, seen, folders)))


def whiteout(path: str) -> bytes:
    """Return the entry of an archive that hides a path of the files below."""
    header = tarfile.TarInfo(path)
    header.type, header.mode = tarfile.CHRTYPE, 0o644
    return header.tobuf(tarfile.GNU_FORMAT, errors="surrogateescape")


def _node(lower: Lower, nodes: dict[str, Node | None], path: str) -> Node | None:
    """Return what the image has at a path. Only folders are kept: a file is asked for once."""
    above, _, name = path.rpartition("/")
    folder = nodes.get(above)
    node = None if folder is None or folder.inode.kind is not Kind.FOLDER else lower.child(folder, name)
    if node is not None and node.inode.kind is Kind.FOLDER:
        nodes[path] = node
    return node


def _removed(lower: Lower, seen: set[str], folders: set[str]) -> Iterator[str]:
    """Yield what the image has and the merged view has not; ``folders`` are those of the merged view."""
    pending = [("", lower.root())]
    while pending:
        above, folder = pending.pop()
        for name in lower.names(folder):
            path = f"{above}/{name}"
            node = lower.child(folder, name)
            if node is None or node.inode.kind is Kind.SOCKET or RUNTIMES.match(path):
                continue
            if path not in seen:
                yield path[1:]
            elif node.inode.kind is Kind.FOLDER and path in folders:
                pending.append((path, node))


def read_lines(listing: Path) -> Iterator[str]:
    """Yield the lines of a list that ``LIST`` wrote."""
    with listing.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        yield from file
