"""``[metadata.otval] keep``: what of the system a task asks its agent to change, so that it is graded as it is left."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

PACKAGE = "pkg:"
"""Begins an entry that names a Python distribution in place of a path."""

_DISTRIBUTION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_NEVER = ("/proc", "/sys", "/dev", "/tests", "/logs", "/solution", "/setup_files", "/.singularity.d")
"""What is the kernel's, the grader's or the container runtime's."""

_OURS = ".otval"
"""Begins the names of what we mount at the top of containers."""


def keep_of(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the entries of a task's [metadata]: absolute paths without ``.`` and ``..``, and ``pkg:NAME``.

    Raises ValueError with one line about the first that is wrong.
    """
    ours = metadata.get("otval", {})
    entries = ours.get("keep", []) if isinstance(ours, Mapping) else []
    if not isinstance(entries, list):
        raise ValueError('is no list: write ["pkg:NAME", "/a/path"]')
    return tuple(_entry(entry) for entry in entries)


def _entry(entry: Any) -> str:
    if not isinstance(entry, str):
        raise ValueError(f"{entry!r} is no text")
    if entry.startswith(PACKAGE):
        if not _DISTRIBUTION.fullmatch(entry.removeprefix(PACKAGE)):
            raise ValueError(f"{entry!r} names no Python distribution: write pkg: and its name")
        return entry
    path = PurePosixPath("/", entry.lstrip("/"))
    if not entry.startswith("/") or ".." in path.parts or "\n" in entry or "\0" in entry:
        raise ValueError(f"{entry!r} is neither pkg:NAME nor an absolute path without '..'")
    if _is_never(path):
        raise ValueError(f"{entry!r} is not the agent's to change")
    return str(path)


def _is_never(path: PurePosixPath) -> bool:
    if len(path.parts) == 1 or path.parts[1].startswith(_OURS):
        return True
    return any(path.is_relative_to(folder) for folder in _NEVER)
