"""What makes two images of the store differ: their records, and their files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from pytest_otval.core import Conclusion
from pytest_otval.images.lower import Lower, Node
from pytest_otval.images.record import Record, image_files
from pytest_otval.task.packed.unpack import DamagedError, Kind

MAX_DEPTH = 200
"""In folders: no image of use is deeper, and a made-up one may hold itself."""

What = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference."""

    what: What
    name: str
    """Of a file its absolute path, of a package ``MANAGER/NAME``, of a setting its name. Hostile."""
    details: str = ""
    """What changed, as ``mode 644 -> 755, content``."""


def record_changes(before: Record, after: Record) -> Iterator[Change]:
    """Yield what the records of two images say differently, logs and times left out."""
    for name in ("base", "all_root", "below"):
        yield from _change(name, getattr(before, name), getattr(after, name))
    for field in fields(before.config):
        old, new = getattr(before.config, field.name), getattr(after.config, field.name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _mapping_changes(field.name, old, new)
        else:
            yield from _change(field.name, old, new)


def package_changes(before: Record, after: Record) -> Iterator[Change]:
    """Yield the packages that came, went, or have another version."""
    for manager in sorted({*before.packages, *after.packages}):
        yield from _mapping_changes(manager, before.packages.get(manager, {}), after.packages.get(manager, {}))


def file_changes(store: Path, before: Record, after: Record) -> Iterator[Change]:
    """Yield the files that differ by kind, size, mode, owner, link target or content, in the order of their paths.

    Their times are left out: they differ in each build. What both images have from one packed file is not read.
    Raises Conclusion ``base-unavailable`` for files that are missing or damaged.
    """
    try:
        with Lower(image_files(store, before)) as old, Lower(image_files(store, after)) as new:
            sides = _side(old, before), _side(new, after)
            yield from _folder_changes(*sides, old.root(), new.root(), "", MAX_DEPTH)
    except (DamagedError, OSError) as error:
        names = f"{before.key[:12]} and {after.key[:12]}"
        raise Conclusion("base-unavailable", f"the files of {names} cannot be compared: {error}") from None


@dataclass(frozen=True, slots=True)
class _Side:
    lower: Lower
    contents: Sequence[str]
    """Digest of each file of the image."""

    def identity(self, node: Node) -> Any:
        """Return the same for what comes from the same places of the same packed files."""
        return [(self.contents[number], inode) for number, inode in node.parts]

    def digest(self, node: Node) -> bytes:
        """Return a digest of a file's bytes."""
        digest = hashlib.sha256()
        for block in self.lower.content(node):
            digest.update(block)
        return digest.digest()


def _side(lower: Lower, record: Record) -> _Side:
    return _Side(lower, (*record.below_contents, record.content))


def _folder_changes(old: _Side, new: _Side, before: Node, after: Node, path: str, depth: int) -> Iterator[Change]:
    if old.identity(before) == new.identity(after):
        return
    if depth == 0:
        raise DamagedError(f"folders more than {MAX_DEPTH} deep")
    for name in sorted({*old.lower.names(before), *new.lower.names(after)}):
        if name in ("", ".", "..") or "/" in name:
            raise DamagedError("a name that cannot be one")
        whole = f"{path}/{name}"
        was, now = old.lower.child(before, name), new.lower.child(after, name)
        if was is not None and now is not None:
            yield from _node_changes(old, new, was, now, whole, depth)
        elif was is not None:
            yield from _all_below(old.lower, was, whole, "removed", depth)
        elif now is not None:
            yield from _all_below(new.lower, now, whole, "added", depth)


def _node_changes(old: _Side, new: _Side, was: Node, now: Node, path: str, depth: int) -> Iterator[Change]:
    if was.inode.kind is not now.inode.kind:
        yield from _all_below(old.lower, was, path, "removed", depth)
        yield from _all_below(new.lower, now, path, "added", depth)
        return
    details = ", ".join(_details(old, new, was, now))
    if details:
        yield Change("changed", path, details)
    if was.inode.kind is Kind.FOLDER:
        yield from _folder_changes(old, new, was, now, path, depth - 1)


def _details(old: _Side, new: _Side, was: Node, now: Node) -> Iterator[str]:
    before, after = was.inode, now.inode
    if before.size != after.size:
        yield f"size {before.size} -> {after.size}"
    if before.mode != after.mode:
        yield f"mode {before.mode:o} -> {after.mode:o}"
    if before.owner != after.owner:
        yield "owner {}:{} -> {}:{}".format(*before.owner, *after.owner)
    if before.target != after.target:
        yield f"target {_text(before.target)} -> {_text(after.target)}"
    same_size = before.kind is Kind.FILE and before.size == after.size and before.size > 0
    if same_size and old.identity(was) != new.identity(now) and old.digest(was) != new.digest(now):
        yield "content"


def _all_below(lower: Lower, node: Node, path: str, what: What, depth: int) -> Iterator[Change]:
    yield Change(what, path)
    if node.inode.kind is not Kind.FOLDER:
        return
    if depth == 0:
        raise DamagedError(f"folders more than {MAX_DEPTH} deep")
    for name in lower.names(node):
        child = lower.child(node, name)
        if child is not None:
            yield from _all_below(lower, child, f"{path}/{name}", what, depth - 1)


def _mapping_changes(group: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for name in sorted({*before, *after}):
        yield from _change(f"{group}/{name}", before.get(name), after.get(name))


def _change(name: str, before: Any, after: Any) -> Iterator[Change]:
    if before is None and after is not None:
        yield Change("added", name, _shown(after))
    elif after is None and before is not None:
        yield Change("removed", name, _shown(before))
    elif before != after:
        yield Change("changed", name, f"{_shown(before)} -> {_shown(after)}")


def _shown(value: Any) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _text(target: bytes) -> str:
    return target.decode("utf-8", "surrogateescape")
