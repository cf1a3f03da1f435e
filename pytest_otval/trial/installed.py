"""Which modules a Python distribution has in an image, as its own record there says. Nothing of the image is run."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path

from pytest_otval.images.lower import Lower, Node, path_parts
from pytest_otval.task.packed.unpack import Kind

MAX_MODULES = 200
"""Of a distribution; the largest have some tens."""
_MAX_RECORD_BYTES = 16 * 1024 * 1024
_MAX_RECORDS = 50


@lru_cache(maxsize=64)
def modules_of(files: tuple[Path, ...], sites: tuple[str, ...], distribution: str) -> frozenset[str]:
    """Return the names at the top of the site folders that a distribution's RECORD lists, at most ``MAX_MODULES``.

    ``sites`` and ``distribution`` are patterns (``fnmatch``). Empty for one that the image does not have. Raises
    OSError and DamagedError where the image cannot be read.
    """
    with Lower(files) as lower:
        found: dict[str, None] = {}
        for name in chain.from_iterable(map(_tops, _records(lower, sites, distribution))):
            found[name] = None
            if len(found) == MAX_MODULES:
                break
    return frozenset(found)


def _records(lower: Lower, sites: Iterable[str], distribution: str) -> Iterator[str]:
    """Yield the texts of a distribution's RECORD files, of each version and place that there is one."""
    ends = (f"{distribution}-*.dist-info", "RECORD")
    places = (_matching(lower, lower.root(), [*path_parts(site), *ends]) for site in sites)
    for record in islice(chain.from_iterable(places), _MAX_RECORDS):
        yield lower.read(record, _MAX_RECORD_BYTES).decode(errors="replace")


def _tops(record: str) -> Iterator[str]:
    # https://packaging.python.org/en/latest/specifications/recording-installed-packages/#the-record-file
    for line in record.splitlines():
        name = _path_in(line).partition("/")[0]
        # Each start of Python runs the lines of a .pth file: nothing of a package needs to be changed by that.
        if name not in ("", ".", "..", "__pycache__") and name.isprintable() and not name.endswith(".pth"):
            yield name


def _path_in(line: str) -> str:
    try:
        row = next(csv.reader([line]), [])
    except csv.Error:
        # Such as a field of more than 128 KiB: no installer wrote it.
        return ""
    return row[0] if row else ""


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
