"""What an image has beyond its base, read from outside: an index of each packed file, made once in a process.

Thousands of tasks share a base and its lower layers, so the base is not looked into at all, and a layer is walked
once. Folders of the system are left out: packages fill them, not tasks.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from types import TracebackType

from pytest_otval.images.lower import MAX_FILE_BYTES, Lower, Node
from pytest_otval.images.model import Files
from pytest_otval.task.packed.image import Image, Inode
from pytest_otval.task.packed.unpack import DamagedError, Kind

_USR = ("bin", "games", "include", "lib", "lib32", "lib64", "libexec", "libx32", "sbin", "share")
SYSTEM = frozenset(
    ("bin", "boot", "dev", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "var/cache", "var/lib")
) | {f"usr/{name}" for name in _USR}
"""Folders that are not walked; a path in them can be asked for all the same."""

MAX_ENTRIES = 200_000
"""Files and folders of one packed file; of an image with more in one, nothing is looked at."""
MAX_DEPTH = 128
MAX_INDEXES = 8
"""Indexes that a process keeps."""

Stamp = tuple[int, int]
"""Size of a regular file, and when it was changed."""


@dataclass(frozen=True, eq=False)
class Index:
    """The regular files of one packed file outside of the system's folders."""

    stamps: Mapping[str, Stamp]
    """By path, relative to the root."""
    fault: str = ""
    """Why there are none of them."""

    @cached_property
    def by_size(self) -> Mapping[int, list[str]]:
        """Paths by size."""
        found: dict[int, list[str]] = {}
        for path, (size, _) in self.stamps.items():
            found.setdefault(size, []).append(path)
        return found

    @cached_property
    def repositories(self) -> tuple[str, ...]:
        """Folders with a HEAD and objects, as git repositories are, bare ones and those of submodules too."""
        heads = {posixpath.dirname(path) for path in self.stamps if posixpath.basename(path) == "HEAD"}
        stores = {path[:at].rstrip("/") for path in self.stamps if (at := f"/{path}".rfind("/objects/")) >= 0}
        return tuple(sorted(heads & stores))

    @cached_property
    def bytecode(self) -> tuple[str, ...]:
        """Files that Python compiled."""
        return tuple(path for path in self.stamps if path.endswith(".pyc") and "__pycache__/" in path)

    @cached_property
    def logs(self) -> tuple[str, ...]:
        """Files of /logs."""
        return tuple(sorted(path for path in self.stamps if path.startswith("logs/")))


def index_of(file: Path) -> Index:
    """Return the index of a packed file. What is wrong with the file is told by the index."""
    try:
        facts = file.stat()
    except OSError as error:
        return Index({}, f"its packed file cannot be read: {error.strerror}")
    return _index(file, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=MAX_INDEXES)
def _index(file: Path, _size: int, _mtime: int) -> Index:
    found: dict[str, Stamp] = {}
    try:
        with ExitStack() as stack:
            image = Image(file, MAX_FILE_BYTES)
            stack.callback(image.close)
            for number, (path, inode) in enumerate(_walk(image)):
                if number == MAX_ENTRIES:
                    return Index({}, f"it has more than {MAX_ENTRIES} files and folders in one layer")
                if inode.kind is Kind.FILE:
                    found[path] = inode.size, inode.mtime
    except (OSError, DamagedError) as error:
        return Index({}, f"its packed file cannot be read: {error}")
    return Index(found)


def _walk(image: Image) -> Iterator[tuple[str, Inode]]:
    pending = [("", image.root(), 0)]
    while pending:
        folder, listing, depth = pending.pop()
        for name, place, kind in image.listing(listing):
            path = folder + name.decode(errors="surrogateescape")
            if kind is not Kind.FILE and (kind is not Kind.FOLDER or path in SYSTEM or depth == MAX_DEPTH):
                continue
            inode = image.inode(place)
            yield path, inode
            # A list may say that a file is a folder.
            if inode.kind is Kind.FOLDER:
                pending.append((f"{path}/", inode, depth + 1))


@lru_cache(maxsize=MAX_INDEXES)
def _between(whole: Index, base: Index) -> Index:
    """Return what a whole file has beyond the one it was made from."""
    stamps = {path: stamp for path, stamp in whole.stamps.items() if base.stamps.get(path) != stamp}
    return Index(stamps, whole.fault)


class Contents:
    """The files of an image that its base has not. Reading raises OSError and DamagedError."""

    def __init__(self, files: Files, base: Files = ()) -> None:
        """``base`` are the files of the base image; without them everything counts."""
        self._files = files
        over = len(base) if files[: len(base)] == base else 0
        self._layers = files[over:]
        self.indexes = [index_of(file) for file in self._layers]
        if base and not over and len(files) == len(base) == 1:
            self.indexes = [_between(self.indexes[0], index_of(base[0]))]
        self.fault = next((index.fault for index in self.indexes if index.fault), "")
        """Why nothing can be looked at."""
        self._stack = ExitStack()

    def __enter__(self) -> Contents:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @cached_property
    def _new(self) -> Lower:
        return self._stack.enter_context(Lower(self._layers))

    @cached_property
    def _new_paths(self) -> _Paths:
        return _Paths(self._new)

    @cached_property
    def _all_paths(self) -> _Paths:
        return _Paths(self._stack.enter_context(Lower(self._files)))

    def numbered(self) -> Iterator[tuple[int, Index]]:
        """Yield the indexes with their numbers, what lies on top first."""
        return ((number, self.indexes[number]) for number in reversed(range(len(self.indexes))))

    def shown(self, number: int, path: str) -> Node | None:
        """Return the file that an index names, where no layer above hides it."""
        node = self._new_paths.find(path)
        return node if node is not None and node.inode.kind is Kind.FILE and node.parts[0][0] == number else None

    def file(self, path: str) -> Node | None:
        """Return the regular file at a path among what is new, reached through no link."""
        node = self._new_paths.find(path)
        return node if node is not None and node.inode.kind is Kind.FILE else None

    def names(self, folder: str) -> list[str]:
        """Return what is new in a folder; nothing where it is no folder."""
        node = self._new_paths.find(folder)
        return self._new.names(node) if node is not None and node.inode.kind is Kind.FOLDER else []

    def read(self, node: Node, most: int) -> bytes:
        """Return at most so many bytes of a file."""
        return self._new.read(node, most)

    def content(self, node: Node) -> Iterator[bytes]:
        """Yield the bytes of a file."""
        return self._new.content(node)

    def exists(self, path: str) -> bool:
        """Whether the whole image has anything at a path."""
        with suppress(OSError, DamagedError):
            return self._all_paths.find(path) is not None
        return False


class _Paths:
    """Paths of a tree, looked up through no link; folders are looked up once."""

    def __init__(self, tree: Lower) -> None:
        self._tree = tree
        self._folders: dict[str, Node | None] = {"": tree.root()}

    def find(self, path: str) -> Node | None:
        """Return what stands at a path relative to the root."""
        folder, _, name = path.rpartition("/")
        node = self._folder(folder)
        return node if not name else self._child(node, name)

    def _folder(self, path: str) -> Node | None:
        node = self._folders[""]
        done = ""
        for name in filter(None, path.split("/")) if path not in self._folders else ():
            done = f"{done}/{name}"
            if done not in self._folders:
                self._folders[done] = self._child(node, name)
            node = self._folders[done]
        self._folders.setdefault(path, node)
        return self._folders[path]

    def _child(self, folder: Node | None, name: str) -> Node | None:
        if folder is None or folder.inode.kind is not Kind.FOLDER:
            return None
        return self._tree.child(folder, name)
