"""What the history of a repository in the image gives away: objects of git that hold the lines of a gold patch.

An agent sees every object of a repository, whether a branch leads to it or not, so all of them are looked at: first
those of commits that HEAD does not come from, then the changed files as they were in HEAD's own past, then the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pytest_otval.images.contents import Contents
from pytest_otval.leaks.gold import ENOUGH, Gold, Hit
from pytest_otval.leaks.objects import Objects

MAX_PAST = 2000
"""Commits of HEAD's own past that are looked at, the newest first."""
MAX_DEPTH = 64
MAX_BLOB = 1024**2
MAX_REFS = 256 * 1024
_NAME = re.compile(r"[0-9a-f]{40}")
_TREE, _FOLDER, _MODULE = re.compile(rb"(\d{5,6}) ([^\0]+)\0(.{20})", re.DOTALL), b"40000", b"160000"
_PERSON_TIME = re.compile(rb"^committer .*> (\d{1,12}) ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Commit:
    """What of a commit matters here."""

    tree: str
    parents: tuple[str, ...]
    time: int


@dataclass(frozen=True, slots=True)
class Found:
    """An object that holds lines of a gold patch."""

    hit: Hit
    where: str
    """Which one, for a person."""
    path: str
    """Of the file in its commit; empty where no commit has it."""


@dataclass(slots=True)
class _Walk:
    """Trees and blobs that were seen."""

    objects: Objects
    seen: set[str] = field(default_factory=set)

    def new_blobs(self, tree: str) -> Iterator[tuple[str, str]]:
        """Yield names and paths of blobs below a tree that no tree before had."""
        pending = [(tree, "", 0)]
        while pending:
            name, folder, depth = pending.pop()
            if name in self.seen or depth > MAX_DEPTH:
                continue
            self.seen.add(name)
            found = self.objects.read(name)
            for mode, entry, raw in _TREE.findall(found[1]) if found is not None and found[0] == "tree" else ():
                path, below = folder + entry.decode("utf-8", "replace"), raw.hex()
                if mode.lstrip(b"0") == _FOLDER:
                    pending.append((below, f"{path}/", depth + 1))
                elif mode != _MODULE and below not in self.seen:
                    self.seen.add(below)
                    yield below, path


def search(contents: Contents, folder: str, gold: Gold, scratch: Path) -> Iterator[Found]:
    """Yield objects of the repository in a folder of an image that hold gold lines, one for each gold file.

    Raises OSError and DamagedError of the image, and TooLargeError where it was not or not all looked at.
    """
    with Objects(contents, folder, scratch) as objects:
        wanted = {id(file) for file in gold.files}
        for blob, path, where in _blobs(objects, _head(contents, folder), gold):
            found = objects.read(blob)
            if found is None or found[0] != "blob" or len(found[1]) > MAX_BLOB:
                continue
            for hit in gold.hits(path, found[1]):
                if id(hit.gold) in wanted and (hit.applied or hit.share >= ENOUGH):
                    wanted.remove(id(hit.gold))
                    yield Found(hit, where, path)
            if not wanted:
                return


def _blobs(objects: Objects, head: str, gold: Gold) -> Iterator[tuple[str, str, str]]:
    """Yield names of blobs with their paths, and who has them, the most telling first."""
    commits = _commits(objects)
    past = _past(commits, head)
    others = sorted(commits.keys() - past.keys(), key=lambda name: commits[name].time, reverse=True)
    walk = _Walk(objects)
    own = list(_changed(walk, head, commits, gold))
    rest: list[tuple[str, str, str]] = []
    for name in others:
        for blob, path in walk.new_blobs(commits[name].tree):
            found = blob, path, f"commit {name[:12]}, which HEAD does not come from,"
            if gold.changes(path):
                yield found
            else:
                rest.append(found)
    yield from ((blob, path, f"commit {head[:12]}, which is HEAD,") for blob, path in own)
    for name in sorted(past, key=lambda name: commits[name].time, reverse=True)[:MAX_PAST]:
        for blob, path in _changed(walk, name, commits, gold):
            yield blob, path, f"commit {name[:12]}, from which HEAD comes,"
    yield from rest
    for name in objects:
        if name not in walk.seen and objects.kind(name) == "blob":
            yield name, "", f"object {name[:12]}, which no commit has,"


def _changed(walk: _Walk, name: str, commits: dict[str, Commit], gold: Gold) -> Iterator[tuple[str, str]]:
    """Yield the new blobs of a commit that stand where a gold patch changes a file."""
    if name in commits:
        for blob, path in walk.new_blobs(commits[name].tree):
            if gold.changes(path):
                yield blob, path


def _commits(objects: Objects) -> dict[str, Commit]:
    found = {}
    for name in objects:
        content = objects.read(name) if objects.kind(name) == "commit" else None
        commit = None if content is None else _parsed(content[1])
        if commit is not None:
            found[name] = commit
    return found


def _parsed(raw: bytes) -> Commit | None:
    head = raw.partition(b"\n\n")[0]
    tree = re.match(rb"tree ([0-9a-f]{40})\n", head)
    if tree is None:
        return None
    parents = tuple(one.decode() for one in re.findall(rb"^parent ([0-9a-f]{40})$", head, re.MULTILINE))
    time = _PERSON_TIME.search(head)
    return Commit(tree[1].decode(), parents, int(time[1]) if time else 0)


def _past(commits: dict[str, Commit], head: str) -> dict[str, Commit]:
    """Return the commits that a commit comes from, itself included."""
    found: dict[str, Commit] = {}
    pending = [head]
    while pending:
        name = pending.pop()
        if name in commits and name not in found:
            found[name] = commits[name]
            pending += commits[name].parents
    return found


def _head(contents: Contents, folder: str) -> str:
    """Return the commit that is checked out; an empty text where that cannot be told."""
    text = _small(contents, f"{folder}/HEAD").strip()
    if not text.startswith("ref:"):
        return text if _NAME.fullmatch(text) else ""
    ref = text.removeprefix("ref:").strip()
    direct = _small(contents, f"{folder}/{ref}").strip()
    if _NAME.fullmatch(direct):
        return direct
    packed = re.search(rf"^([0-9a-f]{{40}}) {re.escape(ref)}$", _small(contents, f"{folder}/packed-refs"), re.MULTILINE)
    return packed[1] if packed is not None else ""


def _small(contents: Contents, path: str) -> str:
    node = contents.file(path)
    return "" if node is None else contents.read(node, MAX_REFS).decode("utf-8", "replace")
