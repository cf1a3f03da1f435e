"""The miniature tasks of all families: each fault, and each sound task that looks almost like one.

A module of this folder has tables of them: lists of ``Fault`` and lists of ``(check, edits)`` for near misses. Edits
are what makes the sound task of conftest.py into the miniature one.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent


def modules() -> Iterator[ModuleType]:
    """Yield the modules with tables."""
    for path in sorted(HERE.glob("*.py")):
        if path.stem.startswith(("test_", "cases_")) and b"Fault(" in path.read_bytes():
            yield importlib.import_module(f"selftests.checks.{path.stem}")


def _lists(module: ModuleType) -> Iterator[list[Any]]:
    return (list(value) for value in vars(module).values() if isinstance(value, list | tuple))


def faults() -> Iterator[Any]:
    """Yield each fault once: check, edits, path, line, severity."""
    seen: set[int] = set()
    for module in modules():
        for table in _lists(module):
            for entry in table:
                if hasattr(entry, "check") and hasattr(entry, "edits") and id(entry) not in seen:
                    seen.add(id(entry))
                    yield entry


def near_misses() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each near miss once: the check that must not find it, and the edits."""
    seen: set[int] = set()
    for module in modules():
        for table in _lists(module):
            for entry in table:
                match entry:
                    case (str() as check, dict() as edits) if id(edits) not in seen:
                        seen.add(id(edits))
                        yield check, edits


def example(check: str) -> Any:
    """Return the first fault of a check, or None."""
    return next((fault for fault in faults() if fault.check == check), None)
