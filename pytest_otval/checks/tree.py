"""One look at a task folder: every entry by kind, without opening, following or waiting for any of them."""

from __future__ import annotations

import os
import posixpath
import stat
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

Kind = Literal["file", "folder", "link", "special", "unreadable"]
"""``special`` is a FIFO, socket or device; ``unreadable`` a folder that cannot be listed."""

MAX_ENTRIES = 100_000
"""Entries looked at in one task; more are left out and reported."""
MAX_DEPTH = 128
MAX_LINKS = 40
"""Links followed in one path before it counts as a loop (what Linux allows)."""


class Entry(NamedTuple):
    """One entry of a task folder."""

    path: str
    """Relative to the task folder, with ``/``; bytes that are not UTF-8 as surrogates."""
    kind: Kind
    size: int
    mode: int
    target: str = ""
    """What a link points to, as written."""

    @property
    def executable(self) -> bool:
        """Whether its owner may execute it."""
        return bool(self.mode & stat.S_IXUSR)


@dataclass(frozen=True)
class Tree:
    """The entries of a task folder by path, sorted; folders come before what is in them."""

    entries: Mapping[str, Entry]
    complete: bool
    """False where there are more entries, or deeper ones, than the limits."""

    def under(self, folder: str) -> Iterator[Entry]:
        """Yield what lies below a folder, at any depth."""
        if not folder:
            return iter(self.entries.values())
        # "0" is the sign behind "/": what lies below a folder stands between the two.
        start, end = bisect_left(self._paths, f"{folder}/"), bisect_left(self._paths, f"{folder}0")
        return map(self.entries.__getitem__, self._paths[start:end])

    @cached_property
    def _paths(self) -> list[str]:
        return list(self.entries)

    def resolve(self, path: str) -> Entry | None:
        """Return the file or folder that a path leads to inside the task, following links only within it.

        None where there is none, where a link leaves the task, and for loops.
        """
        # A path that the scan found goes through no link.
        if (found := self.entries.get(path)) is not None and found.kind != "link":
            return found
        pending = _parts(path)
        done: list[str] = []
        links = 0
        entry: Entry | None = None
        while pending:
            part = pending.pop(0)
            if part == "..":
                if not done:
                    return None
                done.pop()
                continue
            entry = self.entries.get("/".join([*done, part]))
            if entry is None:
                return None
            if entry.kind != "link":
                done.append(part)
                continue
            links += 1
            if links > MAX_LINKS or entry.target.startswith("/"):
                return None
            pending = _parts(entry.target) + pending
        return self.entries.get("/".join(done)) or Entry("", "folder", 0, 0)

    def escapes(self, link: Entry) -> bool:
        """Whether a link leads out of the task folder, whatever lies there."""
        if link.target.startswith("/"):
            return True
        here = posixpath.dirname(link.path)
        return posixpath.normpath(posixpath.join("/task", here, link.target)).split("/")[1:2] != ["task"]


def scan(root: Path) -> Tree:
    """Return the tree of a folder. Raises nothing for any content of it; a root that is no folder is empty."""
    found: dict[str, Entry] = {}
    pending: list[tuple[str, int]] = [("", 0)]
    complete = True
    while pending:
        folder, depth = pending.pop()
        try:
            with os.scandir(f"{root}/{folder}") as listing:
                for raw in listing:
                    if len(found) >= MAX_ENTRIES:
                        complete = False
                        break
                    entry = _entry(raw, f"{folder}/{raw.name}" if folder else raw.name)
                    found[entry.path] = entry
                    if entry.kind == "folder":
                        if depth < MAX_DEPTH:
                            pending.append((entry.path, depth + 1))
                        else:
                            complete = False
        except OSError:
            if folder:
                found[folder] = Entry(folder, "unreadable", 0, found[folder].mode)
    return Tree(dict(sorted(found.items())), complete)


def _entry(raw: os.DirEntry[str], path: str) -> Entry:
    try:
        facts = raw.stat(follow_symlinks=False)
        if stat.S_ISLNK(facts.st_mode):
            return Entry(path, "link", facts.st_size, facts.st_mode, str(Path(raw.path).readlink()))
    except OSError:  # it went away between the listing and now
        return Entry(path, "unreadable", 0, 0)
    kind: Kind = "special"
    if stat.S_ISREG(facts.st_mode):
        kind = "file"
    elif stat.S_ISDIR(facts.st_mode):
        kind = "folder"
    return Entry(path, kind, facts.st_size, facts.st_mode)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
