"""Which modules a Python distribution has in an image, as its own record there says. Nothing of the image is run."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from pytest_otval.images.lower import Lower, Node
from pytest_otval.task.packed.unpack import DamagedError, Kind

_MAX_RECORD_BYTES = 16 * 1024 * 1024


@lru_cache(maxsize=64)
def modules_of(files: tuple[Path, ...], sites: tuple[str, ...], distribution: str) -> frozenset[str]:
    """Return the names at the top of the site folders that a distribution's RECORD lists.

    ``sites`` and ``distribution`` are patterns (``fnmatch``). Empty for one that the image does not have.
    """
    found: set[str] = set()
    try:
        with Lower(files) as lower:
            for site in sites:
                for record in _matching(
                    lower, lower.root(), [*site.strip("/").split("/"), _info(distribution), "RECORD"]
                ):
                    found.update(_tops(lower.read(record, _MAX_RECORD_BYTES).decode(errors="replace")))
    except (OSError, DamagedError):
        return frozenset()
    return frozenset(found)


def _info(distribution: str) -> str:
    return f"{distribution}-*.dist-info"


def _tops(record: str) -> Iterator[str]:
    # https://packaging.python.org/en/latest/specifications/recording-installed-packages/#the-record-file
    for row in csv.reader(record.splitlines()):
        parts = row[0].split("/") if row else []
        name = parts[0] if parts else ""
        # Each start of Python runs the lines of a .pth file: nothing of a package needs to be changed by that.
        if name not in ("", ".", "..", "__pycache__") and name.isprintable() and not name.endswith(".pth"):
            yield name


def _matching(lower: Lower, folder: Node, patterns: Sequence[str]) -> Iterable[Node]:
    if folder.inode.kind is not Kind.FOLDER:
        return
    for name in lower.names(folder):
        node = lower.child(folder, name) if fnmatchcase(name, patterns[0]) else None
        if node is None:
            continue
        if len(patterns) > 1:
            yield from _matching(lower, node, patterns[1:])
        elif node.inode.kind is Kind.FILE:
            yield node
