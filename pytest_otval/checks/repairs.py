"""Repairs that surely change nothing but what a finding is about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import tomli
from pydantic import ValidationError

from pytest_otval.checks.context import BOM, CheckContext
from pytest_otval.checks.registry import Change, Repair
from pytest_otval.core import Finding
from pytest_otval.task import values
from pytest_otval.task.audit import FALSE_TEXTS
from pytest_otval.task.model import TaskConfig

TASK_TOML = "task.toml"

_OLD = re.compile(r": `(\w+)` is old")
_STATEMENT = r"(?P<before>(?:^|[\s{{,])){key}(?P<equals>[ \t]*=[ \t]*)(?P<value>\"[^\"\\\n]*\"|'[^'\n]*'|[\w.+-]+)"


def deprecated_key(context: CheckContext, finding: Finding) -> Iterator[Change]:
    """Write an old key of task.toml in its new spelling, or drop it where the new one is there too.

    A library that keeps layout cannot rename a key where it stands, so its one line is edited; that Harbor's schema
    reads the very same configuration from the result is the proof that nothing else changed.
    """
    source = context.task.source
    key = _OLD.search(finding.message)
    if key is None or finding.line is None:
        return
    lines = source.split("\n")
    line = lines[finding.line - 1]
    match = re.search(_STATEMENT.format(key=re.escape(key[1])), line)
    if match is None:
        return
    for edited in _edits(key[1], match, line):
        kept = [] if edited is None else [edited]
        text = "\n".join([*lines[: finding.line - 1], *kept, *lines[finding.line :]])
        if _says_the_same(source, text):
            yield Change(TASK_TOML, text.encode())
            return


def _edits(key: str, match: re.Match[str], line: str) -> Iterator[str | None]:
    """Yield what a line may become: with the new key, or without the old; None where nothing is left of it."""
    value = match["value"].strip("\"'")
    new = ""
    if key == "version":
        new = f"schema_version{match['equals']}{match['value']}"
    elif key == "allow_internet":
        mode = "no-network" if value.lower() in FALSE_TEXTS else "public"
        new = f'network_mode{match["equals"]}"{mode}"'
    else:
        try:
            new = f"{key}_mb{match['equals']}{values.size_in_mib(value)}"
        except ValueError:
            return
    before, after = line[: match.start()] + match["before"], line[match.end() :]
    yield before + new + after
    if not before.strip():
        comment = after.strip()
        yield before + comment if comment else None


def _says_the_same(before: str, after: str) -> bool:
    """Whether a task.toml is read as the same configuration."""
    try:
        old, new = tomli.loads(before), tomli.loads(after)
        # The metadata of a task is not Harbor's to read, and as it is.
        same = TaskConfig.model_validate(old) == TaskConfig.model_validate(new)
        return same and _outer(old) == _outer(new)
    except (ValidationError, ValueError, OverflowError, RecursionError):
        return False


def _outer(data: Mapping[str, Any]) -> object:
    return data.get("metadata")


def no_byte_order_mark(context: CheckContext, finding: Finding) -> Iterator[Change]:
    """Remove the mark at the start of a file."""
    source = context.source(finding.path)
    if source is not None and source.whole and source.raw.startswith(BOM):
        yield Change(finding.path, source.raw.removeprefix(BOM))


def unix_line_ends(context: CheckContext, finding: Finding) -> Iterator[Change]:
    """Convert line ends; a file that has both kinds may mean some of them and is left alone."""
    source = context.source(finding.path)
    if source is None or not source.whole or source.is_binary:
        return
    converted = source.raw.replace(b"\r\n", b"\n")
    if source.raw.count(b"\n") == source.raw.count(b"\r\n") and b"\r" not in converted:
        yield Change(finding.path, converted)


ELSEWHERE_REPAIRS: Mapping[str, Repair] = {"toml-deprecated": deprecated_key, "toml-parse": no_byte_order_mark}
"""Of findings that no check makes."""
