"""``python -m pytest_otval checks``: every check by family, or one explained with an example of what it finds."""

from __future__ import annotations

import difflib
import importlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_otval.checks.elsewhere import ELSEWHERE
from pytest_otval.checks.registry import Check, all_checks
from pytest_otval.checks.repairs import ELSEWHERE_REPAIRS
from pytest_otval.core import OtvalUsageError

EXAMPLE_LINES = 12
"""Of each file."""

TABLES = "selftests/checks/tables.py"
"""Where a checkout has miniature tasks with faults."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What there is to know of a check."""

    id: str
    family: str
    severity: str
    explains: str
    fix: str
    repairs: bool
    """Whether ``--otval-fix`` can do away with what it finds."""

    def as_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return {
            "id": self.id,
            "family": self.family,
            "severity": self.severity,
            "explains": self.explains,
            "fix": self.fix,
            "otval_fix": self.repairs,
        }


def catalogue(checks: Iterable[Check] | None = None) -> Mapping[str, Entry]:
    """Return all there is by id: our checks, or those given, in the order of their families, and what else is told."""
    found: dict[str, list[Entry]] = {}
    for check in all_checks().values() if checks is None else checks:
        repairs = check.repair is not None
        entry = Entry(check.id, check.family, str(check.severity), check.explains, check.fix, repairs)
        found.setdefault(entry.family, []).append(entry)
    for told in ELSEWHERE.values():
        repairs = told.id in ELSEWHERE_REPAIRS
        entry = Entry(told.id, told.family, str(told.severity), told.explains, told.fix, repairs)
        found.setdefault(entry.family, []).append(entry)
    return {entry.id: entry for family in found.values() for entry in family}


def show_checks(id: str | None, as_json: bool) -> int:
    """Print the list of checks, or what there is to know of one. Raises OtvalUsageError for an id that there is not."""
    known = catalogue()
    if id is None:
        _print(json.dumps([entry.as_dict() for entry in known.values()], indent=2) if as_json else _table(known))
        return 0
    if id not in known:
        near = difflib.get_close_matches(id, known, n=1)
        hint = f": did you mean {near[0]}?" if near else ": `python -m pytest_otval checks` lists all"
        raise OtvalUsageError(f"there is no check {id!r}{hint}")
    entry, example = known[id], example_of(id)
    _print(json.dumps({**entry.as_dict(), "example": example}, indent=2) if as_json else _explained(entry, example))
    return 0


def _print(text: str | Iterable[str]) -> None:
    try:
        print(text if isinstance(text, str) else "\n".join(text))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough; Python would complain again when it flushes at its end.
        sys.stdout = None


def _table(known: Mapping[str, Entry]) -> Iterator[str]:
    width = max(map(len, known))
    family = ""
    for entry in known.values():
        if entry.family != family:
            yield from ([""] if family else [])
            yield entry.family
            family = entry.family
        mark = " [--otval-fix]" if entry.repairs else ""
        yield f"  {entry.id:{width}}  {entry.severity:7}  {entry.explains}{mark}"
    yield ""
    yield f"{len(known)} checks, with their usual severity. `checks ID` explains one."


def _explained(entry: Entry, example: Mapping[str, Any] | None) -> Iterator[str]:
    yield f"{entry.id} ({entry.family}, {entry.severity})"
    yield ""
    yield f"why:  {entry.explains}"
    yield f"fix:  {entry.fix}"
    if entry.repairs:
        yield "      --otval-fix does it where it is sure to change nothing else"
    yield f"allow: # otval: allow {entry.id} because REASON"
    if example is None:
        return
    yield ""
    line = "" if example["line"] is None else f":{example['line']}"
    yield f"example, found at {example['path']}{line}:"
    for path, content in example["files"].items():
        yield f"  {path}"
        for text in content.split("\n")[:EXAMPLE_LINES]:
            yield f"  | {text}".rstrip()


def example_of(id: str) -> dict[str, Any] | None:
    """Return a failing task from the selftests of this checkout: its files that differ from a sound one's, and where.

    None where the package was installed without them, or without the tools that they need.
    """
    root = Path(__file__).parents[2]
    if not (root / TABLES).is_file():
        return None
    sys.path.append(str(root))
    try:
        fault = importlib.import_module(TABLES.removesuffix(".py").replace("/", ".")).example(id)
    except ImportError:
        return None
    finally:
        sys.path.remove(str(root))
    return fault and {"path": fault.path, "line": fault.line, "files": dict(_files(fault.edits))}


def _files(edits: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for path, content in edits.items():
        match content:
            case None:
                yield path, "(not there)"
            case ("link" | "fifo" as kind, target):
                yield path, f"({kind}{' to ' if target else ''}{target})"
            case (mode, str() as text):
                yield path, f"(mode {mode})\n{text}"
            case bytes():
                yield path, content.decode("utf-8", "backslashreplace")
            case str():
                yield path, content
