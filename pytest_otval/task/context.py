"""The build context of a Dockerfile: the files below its folder that ``.dockerignore`` leaves.

Listed without following a link; opening nothing but ``.dockerignore``.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_otval.task.patterns import copy_pattern, ignore_pattern
from pytest_otval.task.reading import is_regular, read_regular

EntryKind = Literal["file", "folder", "link", "fifo"]

_MAX_IGNORE_BYTES = 1 << 20
_MAX_DEPTH = 200
_MAX_LINKS = 40
"""As many links as Linux follows in one path."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, folder or link of a context. Sockets and devices are in no context."""

    path: str
    """Relative to the context, with ``/``."""
    kind: EntryKind
    executable: bool
    size: int
    """Bytes of a regular file, else 0."""
    mtime: int
    """Seconds since the epoch."""
    target: str = ""
    """Where a link points to, as it says."""


@dataclass(frozen=True, slots=True)
class Context:
    """A listed context."""

    root: Path
    entries: Mapping[str, Entry]
    """By path, in the order of their names; a folder comes before what is in it."""

    def find(self, path: str) -> Entry | None:
        """Return the entry at ``path`` as BuildKit finds a COPY source, or None.

        Links are followed within the listing alone: ``..`` and absolute targets end at the context's root. The root
        itself is a folder with the path ``.``.
        """
        todo, done, links = _parts(path)[::-1], list[str](), 0
        while todo:
            part = todo.pop()
            if part == "..":
                done = done[:-1]
                continue
            entry = self.entries.get("/".join([*done, part]))
            if entry is None:
                return None
            if entry.kind != "link":
                done.append(part)
                continue
            links += 1
            if links > _MAX_LINKS:
                return None
            done = [] if entry.target.startswith("/") else done
            todo += _parts(entry.target)[::-1]
        return self.entries["/".join(done)] if done else Entry(".", "folder", True, 0, 0)

    def match(self, pattern: str) -> list[Entry]:
        """Return the entries whose whole path matches, by the rules of Go's ``filepath.Match``.

        As with BuildKit, links are followed in front of the first part with a wildcard only. Raises ValueError for a
        malformed pattern.
        """
        parts = _parts(pattern)
        plain = next((number for number, part in enumerate(parts) if has_wildcard(part)), len(parts))
        matches = copy_pattern("/".join(parts[plain:])).fullmatch
        folder = self.find("/".join(parts[:plain]))
        if folder is None or folder.kind != "folder":
            return []
        return [entry for path, entry in self.below(folder) if matches(path)]

    def below(self, folder: Entry) -> Iterator[tuple[str, Entry]]:
        """Yield everything below a folder as (path relative to it, entry)."""
        prefix = "" if folder.path == "." else folder.path + "/"
        for path, entry in self.entries.items():
            if path.startswith(prefix):
                yield path[len(prefix) :], entry

    def open(self, entry: Entry) -> int:
        """Return a descriptor of a regular file of the context. Raises OSError, also where it is a file no more.

        No component of its path is followed if it has become a link since it was listed.
        """
        folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            *parents, name = entry.path.split("/")
            for parent in parents:
                above = folder
                folder = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
                os.close(above)
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        finally:
            os.close(folder)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError(f"{entry.path} is no regular file any more")
        return file


def list_context(root: Path) -> Context:
    """List the context at ``root``.

    Raises ValueError for a wrong ``.dockerignore`` ("FILE:LINE: ...") or folders nested too deep, NotReadableError for
    a ``.dockerignore`` that is too long, OSError.
    """
    ignored, may_reenter = _ignore_rule(root)
    entries: dict[str, Entry] = {}
    for entry in _walk(root, "", ignored, may_reenter):
        entries[entry.path] = entry
    return Context(root, entries)


def has_wildcard(pattern: str) -> bool:
    """Whether a COPY source is a pattern."""
    return re.search(r"[*?\[]", re.sub(r"\\.", "", pattern)) is not None


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _walk(root: Path, prefix: str, ignored: Callable[[str], bool], may_reenter: bool) -> Iterator[Entry]:
    """Yield what is not ignored, and the folders above it. ``may_reenter``: look into ignored folders too."""
    if prefix.count("/") > _MAX_DEPTH:
        raise ValueError(f"folders nested deeper than {_MAX_DEPTH}")
    with os.scandir(root / prefix) as listing:
        found = sorted(listing, key=lambda item: item.name)
    for item in found:
        path = prefix + item.name
        out = ignored(path)
        if out and not (may_reenter and item.is_dir(follow_symlinks=False)):
            continue
        entry = _entry(path, item)
        if entry is None:
            continue
        below = _walk(root, path + "/", ignored, may_reenter) if entry.kind == "folder" else iter(())
        first = next(below, None)
        if not out or first is not None:
            yield entry
        if first is not None:
            yield first
            yield from below


def _entry(path: str, item: os.DirEntry[str]) -> Entry | None:
    facts = item.stat(follow_symlinks=False)
    kind = _KINDS.get(stat.S_IFMT(facts.st_mode))
    if kind is None:
        return None
    target = str(Path(item.path).readlink()) if kind == "link" else ""
    size = facts.st_size if kind == "file" else 0
    return Entry(path, kind, bool(facts.st_mode & 0o111), size, int(facts.st_mtime), target)


_KINDS: Mapping[int, EntryKind] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "fifo",
}


def _ignore_rule(root: Path) -> tuple[Callable[[str], bool], bool]:
    """Return whether a path is ignored, and whether an ignored folder may hold something that is not."""
    name = next((name for name in ("Dockerfile.dockerignore", ".dockerignore") if is_regular(root / name)), None)
    patterns: list[tuple[re.Pattern[str], bool]] = []
    for number, line in enumerate(_ignore_lines(root / name) if name else [], start=1):
        text = "" if line.startswith("#") else line.strip()
        exception = text.startswith("!")
        if text == "!":
            raise ValueError(f"{name}:{number}: ! without a pattern")
        text = posixpath.normpath(text[exception:].strip().strip("/") or ".")
        if text == ".":
            continue
        try:
            patterns.append((ignore_pattern(text), exception))
        except ValueError as error:
            raise ValueError(f"{name}:{number}: {error}") from None

    def ignored(path: str) -> bool:
        parts = path.split("/")
        paths = ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]
        answer = False
        for pattern, exception in patterns:
            if answer == exception and any(pattern.fullmatch(candidate) for candidate in paths):
                answer = not exception
        return answer

    return ignored, any(exception for _, exception in patterns)


def _ignore_lines(path: Path) -> list[str]:
    return read_regular(path, _MAX_IGNORE_BYTES).decode("utf-8-sig", errors="surrogateescape").splitlines()
