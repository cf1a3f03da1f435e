"""Tasks in Harbor's format that are packed in Parquet, with columns ``path`` and ``task_binary``: passed through."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import ClassVar

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from pytest_otval.core import Conclusion
from pytest_otval.sources.adapters.base import MAX_TASK_BYTES, Outcome, Reason, Record, RefusalError, convert_all
from pytest_otval.sources.adapters.rows import Row, read_rows
from pytest_otval.sources.files import File, Files
from pytest_otval.task.packed.parquet import NAMES, TASKS
from pytest_otval.task.packed.tarball import task_entries
from pytest_otval.task.packed.unpack import DamagedError, Entry, Kind, Rules, shown

_NEEDED = ("task.toml",)


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class HarborParquet:
    """The adapter ``harbor-parquet``; its source is a Parquet file, or a folder of them."""

    name: ClassVar[str] = "harbor-parquet"

    def convert(self, source: Path) -> Iterator[Outcome]:
        """See ``Adapter``."""
        return convert_all(_record(row) for row in read_rows(source, (NAMES, TASKS)))


def _record(row: Row) -> Record:
    name = row.values.get(NAMES)
    if row.problem or not isinstance(name, str):
        return Record(row.place, partial(_refuse, "unreadable", row.problem or f"has no {NAMES} that is a text"))
    return Record(name.removeprefix("./").rstrip("/"), partial(_files, row.values.get(TASKS)))


def _refuse(reason: Reason, why: str, _: str) -> Files:
    raise RefusalError(reason, why)


def _files(packed: object, name: str) -> Files:
    if not isinstance(packed, bytes):
        raise RefusalError("wrong-field", f"has no {TASKS} of bytes")
    try:
        files = dict(_unpacked(packed, name))
    except Conclusion as conclusion:
        raise RefusalError("unsafe-path", conclusion.headline) from None
    except DamagedError as error:
        raise RefusalError("unreadable", f"{TASKS} cannot be read: {error}") from None
    for path in _NEEDED:
        if path not in files:
            raise RefusalError("unreadable", f"the packed task has no {path}")
    return dict(sorted(files.items()))


def _unpacked(packed: bytes, name: str) -> Iterator[tuple[str, File]]:
    rules, seen, left = Rules(), set[str](), MAX_TASK_BYTES
    for entry in task_entries(io.BytesIO(packed), name):
        path = os.fsdecode(rules.checked(entry.path, entry.path))
        rules.count_entry(entry.path)
        if entry.kind is Kind.FOLDER:
            continue
        if entry.kind is not Kind.FILE:
            raise RefusalError("unsafe-path", f"{shown(entry.path)} is {entry.kind}, and only files are taken")
        if path in seen:
            raise RefusalError("unsafe-path", f"{shown(entry.path)} occurs twice")
        seen.add(path)
        content = _content(entry, left)
        left -= len(content)
        yield path, File(content, entry.executable)


def _content(entry: Entry, left: int) -> bytes:
    pieces = bytearray()
    for piece in entry.content():
        pieces += piece
        if len(pieces) > left:
            raise RefusalError("too-large", f"its files have more than {MAX_TASK_BYTES >> 20} MiB")
    return bytes(pieces)
