"""Looking up paths in an image's files from outside, without starting a container.

Links are followed within the image alone. The files are of the store, but what is in them was made by tasks, so they
are read piece by piece by a reader that trusts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from pytest_otval.task.packed.image import Image, Inode
from pytest_otval.task.packed.unpack import Kind

MAX_FILE_BYTES = 1 << 40
"""Weights of models are large; a file's list of blocks, which is read at once, has four bytes for each 128 KiB."""
MAX_LINKS = 40
"""As many links as Linux follows in one path."""


@dataclass(frozen=True, slots=True)
class Node:
    """What stands at a path: in the topmost file that has it; a folder's entries are those of all files."""

    inode: Inode
    parts: tuple[tuple[int, Inode], ...]
    """Number of the file and inode, topmost first; more than one for a folder alone."""


class Lower:
    """The files of an image, lowest first, as one tree. Raises OSError and DamagedError as it is used."""

    def __init__(self, files: Sequence[Path]) -> None:
        with ExitStack() as stack:
            self._images = [self._opened(stack, file) for file in files]
            self._close = stack.pop_all()
        self._listings: dict[tuple[int, Inode], dict[str, Inode]] = {}

    @staticmethod
    def _opened(stack: ExitStack, file: Path) -> Image:
        image = Image(file, MAX_FILE_BYTES)
        stack.callback(image.close)
        return image

    def __enter__(self) -> Lower:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close.close()

    def root(self) -> Node:
        """Return the top folder."""
        parts = tuple((number, image.root()) for number, image in enumerate(self._images))
        return Node(parts[-1][1], parts[::-1])

    def child(self, folder: Node, name: str) -> Node | None:
        """Return what a folder holds under a name, without following it; None for nothing."""
        parts: list[tuple[int, Inode]] = []
        for number, inode in folder.parts:
            found = self._listing(number, inode).get(name)
            if found is None:
                continue
            if _is_whiteout(found) or (parts and found.kind is not Kind.FOLDER):
                break
            parts.append((number, found))
            if found.kind is not Kind.FOLDER:
                break
        return Node(parts[0][1], tuple(parts)) if parts else None

    def names(self, folder: Node) -> list[str]:
        """Return the names of what is in a folder."""
        found: dict[str, Inode] = {}
        for number, inode in folder.parts:
            found = self._listing(number, inode) | found
        return sorted(name for name, inode in found.items() if not _is_whiteout(inode))

    def follow(self, parts: Sequence[str]) -> tuple[list[str], Node] | None:
        """Return where the parts of a path lead to, as parts without links and node; None for nowhere."""
        todo, done, links = list(parts)[::-1], list[tuple[str, Node]](), 0
        while todo:
            part = todo.pop()
            if part == "..":
                done = done[:-1]
                continue
            here = done[-1][1] if done else self.root()
            node = self.child(here, part) if here.inode.kind is Kind.FOLDER else None
            if node is None:
                return None
            if node.inode.kind is not Kind.LINK:
                done.append((part, node))
                continue
            links += 1
            if links > MAX_LINKS:
                return None
            target = node.inode.target.decode(errors="surrogateescape")
            done = [] if target.startswith("/") else done
            todo += path_parts(target)[::-1]
        return [name for name, _ in done], done[-1][1] if done else self.root()

    def content(self, node: Node) -> Iterator[bytes]:
        """Yield the bytes of a regular file."""
        return self._images[node.parts[0][0]].content(node.inode)

    def read(self, node: Node, most: int) -> bytes:
        """Return at most so many bytes of a regular file."""
        content = bytearray()
        for block in self.content(node):
            content += block
            if len(content) >= most:
                break
        return bytes(content[:most])

    def _listing(self, number: int, folder: Inode) -> dict[str, Inode]:
        # Not by its place alone: an empty folder has that of the next one.
        key = number, folder
        if key not in self._listings:
            image = self._images[number]
            self._listings[key] = {
                name.decode(errors="surrogateescape"): image.inode(place) for name, place, _ in image.listing(folder)
            }
        return self._listings[key]


def path_parts(path: str) -> list[str]:
    """Return the names in a path, without what says nothing."""
    return [part for part in path.split("/") if part not in ("", ".")]


def _is_whiteout(inode: Inode) -> bool:
    """Whether an entry hides what the files below have under its name."""
    return inode.kind is Kind.DEVICE and inode.device == 0
