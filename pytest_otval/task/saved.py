"""The runtimes that a dataset's tasks have: ``[otval.runtimes]`` of dataset.toml, checksums by the ids of runtimes.

An id stands for all that a runtime is made from, so tasks share lines and a task that changes finds none of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pytest_otval.core import NAME

TABLE = "runtimes"
RUNTIME_ID = re.compile(rf"({NAME.pattern})-[0-9a-f]{{12}}")
PREFIX = "sha256:"
EXAMPLE = 'NAME-0123456789ab = "sha256:..."'
_CHECKSUM = re.compile(rf"{PREFIX}([0-9a-f]{{64}})")


def read_saved(value: Any) -> Iterator[tuple[str, str | None]]:
    """Yield id and checksum (64 hex digits) of each entry; None in its place where it is none."""
    if not isinstance(value, dict):
        yield "", None
        return
    for name, entry in value.items():
        found = _CHECKSUM.fullmatch(entry) if isinstance(entry, str) and RUNTIME_ID.fullmatch(name) else None
        yield name, found and found[1]
