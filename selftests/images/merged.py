"""What a container sees of an image's files, read without one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_otval.images.lower import Lower, Node
from pytest_otval.task.packed.unpack import Kind


@dataclass(frozen=True)
class Seen:
    """One file, folder or link."""

    kind: str
    mode: int
    owner: tuple[int, int]
    content: bytes
    """Of a link its target, of a folder nothing."""


def merged(files: tuple[Path, ...]) -> dict[str, Seen]:
    """Return everything by its absolute path."""
    found: dict[str, Seen] = {}
    with Lower(files) as lower:
        todo: list[tuple[str, Node]] = [("", lower.root())]
        while todo:
            path, node = todo.pop()
            inode = node.inode
            content = inode.target
            if inode.kind is Kind.FILE:
                content = b"".join(lower.content(node))
            elif inode.kind is Kind.FOLDER:
                todo += [(f"{path}/{name}", child) for name in lower.names(node) if (child := lower.child(node, name))]
            mode = 0 if inode.kind is Kind.LINK else inode.mode
            found[path or "/"] = Seen(inode.kind.name.lower(), mode, inode.owner, content)
    return found
