"""The last steps of a build that only add files, as a squashfs over the image before them; no container is started.

The result is what the same steps leave in a container. Where that cannot be foretold, as where a folder is copied over
a link, it is not tried: the steps then run in a container. Nothing is removed, so the layer needs no whiteouts.
"""

from __future__ import annotations

import os
import posixpath
import tarfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pytest_otval.images.changes import RUNTIMES
from pytest_otval.images.copying import CopyError, Member, members
from pytest_otval.images.lower import MAX_LINKS, Lower, Node
from pytest_otval.images.modes import folder_mode
from pytest_otval.images.owner import numeric_owner
from pytest_otval.images.pack import packing
from pytest_otval.images.steps import CopyStep, Step, WorkdirStep
from pytest_otval.task.context import Context
from pytest_otval.task.packed.unpack import Kind

_MAX_TABLE_BYTES = 1 << 20
_TYPES = {
    Kind.FOLDER: tarfile.DIRTYPE,
    Kind.FILE: tarfile.REGTYPE,
    Kind.LINK: tarfile.SYMTYPE,
    Kind.FIFO: tarfile.FIFOTYPE,
    Kind.SOCKET: tarfile.REGTYPE,
    Kind.DEVICE: tarfile.CHRTYPE,
}


class NotALayerError(Exception):
    """What the steps make cannot be told without running them."""


def write_layer(lower: Lower, steps: Sequence[Step], context: Context | None, all_root: bool, target: Path) -> None:
    """Write what the steps add to an image as the squashfs ``target``.

    Raises NotALayerError, OSError, PackError, Conclusion ``missing-tool``, DamagedError.
    """
    tree = _Tree(lower)
    for step in steps:
        if isinstance(step, WorkdirStep):
            tree.make_folder(step.path, _owner(tree, step.user or "", known=False), 0o755)
        elif isinstance(step, CopyStep) and context is not None:
            _copy(tree, step, context)
        else:
            raise NotALayerError(f"{step.text} needs a container")
    try:
        with (
            packing(target, all_root, folders=()) as stream,
            os.fdopen(os.dup(stream), "wb") as file,
            tarfile.open(fileobj=file, mode="w|", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar,
        ):
            for member in tree.members():
                member.add_to(tar)
    except CopyError as error:
        # A file that is gone by now; as above, the steps say so with the line.
        raise NotALayerError(str(error)) from None


def _owner(tree: _Tree, words: str, known: bool) -> tuple[int, int]:
    try:
        return numeric_owner(words, tree.text)
    except LookupError as error:
        if not known:
            return 0, 0
        # The steps in their container say the same, with the line.
        raise NotALayerError(str(error)) from None


def _copy(tree: _Tree, step: CopyStep, context: Context) -> None:
    owner = _owner(tree, step.owner, known=True)
    for source in step.sources:
        folder, name = step.destination, source.name
        if name and not step.into_folder and not tree.is_folder(folder):
            folder, name = tree.place(folder)
        place = tree.make_folder(folder, owner, folder_mode(step.mode))
        for member in members(context, source, name, owner, step.mode):
            tree.put(posixpath.join(place, member.header.name), member)


class _Tree:
    """An image with what was added to it. Paths are absolute and without links, other than the last part."""

    def __init__(self, lower: Lower) -> None:
        self._lower = lower
        self._added: dict[str, Member] = {}
        self._nodes: dict[str, Node | None] = {"/": lower.root()}

    def members(self) -> list[Member]:
        """Return all that was added, folders before what is in them, with its path below the root as its name."""
        found = []
        for path, member in sorted(self._added.items(), key=lambda item: item[0].split("/")):
            member.header.name = path[1:]
            found.append(member)
        return found

    def put(self, path: str, member: Member) -> None:
        """Add something whose folder exists or was added."""
        before = self._type(path)
        if before is not None and (before == tarfile.DIRTYPE) != member.header.isdir():
            raise NotALayerError(f"{path} is of another kind")
        self._keep_folders_above(path)
        self._added[path] = member

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder, perhaps behind links."""
        with suppress(_MissingError):
            return self._type(self._resolved(path)) == tarfile.DIRTYPE
        return False

    def place(self, path: str) -> tuple[str, str]:
        """Return folder and name of where a file under a path goes that is no folder: a link is followed."""
        try:
            return posixpath.split(self._resolved(path))
        except _MissingError as missing:
            return posixpath.join(missing.above, *missing.rest[:-1]), missing.rest[-1]

    def make_folder(self, path: str, owner: tuple[int, int], mode: int) -> str:
        """Make a folder, and those above it, where they are missing; return its path without links."""
        try:
            resolved = self._resolved(path)
        except _MissingError as missing:
            above, rest = missing.above, missing.rest
        else:
            if self._type(resolved) != tarfile.DIRTYPE:
                raise NotALayerError(f"{path} is no folder")
            return resolved
        if ".." in rest:
            raise NotALayerError(f"{path} goes up from what is missing")
        for part in rest:
            above = posixpath.join(above, part)
            self._keep_folders_above(above)
            header = tarfile.TarInfo(above)
            header.type, header.mode = tarfile.DIRTYPE, mode
            header.uid, header.gid = owner
            self._added[above] = Member(header, None)
        return above

    def text(self, path: str) -> str:
        """Return a small text file of the image, as a table of users."""
        with suppress(_MissingError):
            resolved = self._resolved(path)
            node = self._node(resolved)
            if resolved in self._added:
                raise NotALayerError(f"{path} is copied as well")
            if node is not None and node.inode.kind is Kind.FILE:
                return self._lower.read(node, _MAX_TABLE_BYTES).decode(errors="replace")
        return ""

    def _resolved(self, path: str) -> str:
        todo, done, links = _parts(path)[::-1], "/", 0
        while todo:
            part = todo.pop()
            if part == "..":
                done = posixpath.dirname(done)
                continue
            here = posixpath.join(done, part)
            kind = self._type(here)
            if kind is None:
                raise _MissingError(done, [part, *todo[::-1]])
            if kind != tarfile.SYMTYPE:
                if todo and kind != tarfile.DIRTYPE:
                    raise NotALayerError(f"{here} is no folder")
                done = here
                continue
            links += 1
            if links > MAX_LINKS:
                raise NotALayerError(f"{path} has too many links")
            target = self._target(here)
            done = "/" if target.startswith("/") else done
            todo += _parts(target)[::-1]
        return done

    def _type(self, path: str) -> bytes | None:
        if path in self._added:
            return self._added[path].header.type
        node = self._node(path)
        return None if node is None else _TYPES[node.inode.kind]

    def _target(self, path: str) -> str:
        if path in self._added:
            return self._added[path].header.linkname
        node = self._node(path)
        assert node is not None
        return node.inode.target.decode(errors="surrogateescape")

    def _node(self, path: str) -> Node | None:
        if path not in self._nodes:
            above = self._node(posixpath.dirname(path))
            inside = above is not None and above.inode.kind is Kind.FOLDER
            found = self._lower.child(above, posixpath.basename(path)) if above is not None and inside else None
            self._nodes[path] = found
        return self._nodes[path]

    def _keep_folders_above(self, path: str) -> None:
        """A folder of the layer hides owner and mode of the one below it, so it gets the same."""
        if RUNTIMES.match(path):
            raise NotALayerError(f"{path} is the runtime's")
        folder = posixpath.dirname(path)
        while folder != "/" and folder not in self._added:
            node = self._node(folder)
            assert node is not None
            header = tarfile.TarInfo(folder)
            header.type, header.mode, header.mtime = tarfile.DIRTYPE, node.inode.mode, node.inode.mtime
            header.uid, header.gid = node.inode.owner
            self._added[folder] = Member(header, None)
            folder = posixpath.dirname(folder)


class _MissingError(Exception):
    """A path ends too early: at the folder ``above``, below which the parts ``rest`` are missing."""

    def __init__(self, above: str, rest: list[str]) -> None:
        super().__init__(above)
        self.above = above
        self.rest = rest


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
