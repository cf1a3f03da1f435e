"""Lines that are only ever added to a file of the workspace: what people and measurements say of judges."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def append(path: Path, values: Mapping[str, Any]) -> None:
    """Add one line, in one write, so that those of others are never mixed with it. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # What a killed process or a full disk left half ends here.
    data = b"\n" + json.dumps(values, ensure_ascii=True, allow_nan=False).encode() + b"\n"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        os.write(handle, data)
        os.fsync(handle)
    finally:
        os.close(handle)


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines that are whole, in the order in which they were added; none without the file. Raises OSError."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        for raw in file:
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError):
                continue
            if isinstance(line, dict):
                yield line
