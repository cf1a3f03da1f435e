"""Rows of tables in Parquet, JSON lines or JSON, read in small batches."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_otval.sources.files import SourceError
from pytest_otval.task.packed.parquet import as_damage, open_parquet
from pytest_otval.task.packed.unpack import DamagedError
from pytest_otval.task.reading import NotReadableError, open_regular, read_regular

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Of one row in JSON lines."""
MAX_JSON_BYTES = 64 * 1024 * 1024
"""Of a JSON file, which is read as a whole."""
BATCH_ROWS = 16
"""Rows of Parquet in memory; a row of a large task has some MB."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row, or why it cannot be read."""

    place: str
    """File and number, for people."""
    values: Mapping[str, Any]
    problem: str = ""


def read_rows(source: Path, columns: Collection[str]) -> Iterator[Row]:
    """Yield the rows of a file, or of all Parquet files below a folder, or of its JSON files if it has no Parquet.

    Of Parquet only the named columns are read. Files are taken in the order of their paths. Raises SourceError for a
    file that cannot be read.
    """
    for file in _files(source):
        place = file.name if file == source else file.relative_to(source).as_posix()
        try:
            # A cache may hold its files as links.
            yield from _READERS[file.suffix](file.resolve(), place, columns)
        except (DamagedError, NotReadableError, OSError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise SourceError(f"{file}: {why}: fetch it again") from None


def _files(source: Path) -> list[Path]:
    if source.is_file():
        if source.suffix not in _READERS:
            raise SourceError(f"{source}: is no .parquet, .jsonl or .json file: convert it")
        return [source]
    found = [
        Path(folder) / name
        for folder, _, names in os.walk(source)
        for name in names
        if name[0] != "." and Path(name).suffix in _READERS and (Path(folder) / name).is_file()
    ]
    for suffix in _READERS:
        if chosen := sorted(file for file in found if file.suffix == suffix):
            return chosen
    raise SourceError(f"{source}: has no .parquet, .jsonl or .json file: fetch it, or name another folder")


def _parquet_rows(file: Path, place: str, columns: Collection[str]) -> Iterator[Row]:
    with as_damage():
        opened = open_parquet(file)
        there = [name for name in opened.schema_arrow.names if name in columns]
    number = -1
    batches = opened.iter_batches(BATCH_ROWS, columns=there, use_threads=False)
    while True:
        with as_damage():
            batch = next(batches, None)
        if batch is None:
            return
        for index in range(batch.num_rows):
            number += 1
            try:
                values = {name: batch.column(name)[index].as_py() for name in there}
            except UnicodeDecodeError:
                yield Row(f"{place} row {number}", {}, "a text of it is no UTF-8")
            else:
                yield Row(f"{place} row {number}", values)


def _json_lines(file: Path, place: str, _: Collection[str]) -> Iterator[Row]:
    with os.fdopen(open_regular(file), "rb") as stream:
        number = 0
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            where = f"{place} line {number}"
            if len(line) > MAX_LINE_BYTES:
                while line and not line.endswith(b"\n"):
                    line = stream.readline(MAX_LINE_BYTES)
                yield Row(where, {}, f"it has more than {MAX_LINE_BYTES >> 20} MiB")
            elif line.strip():
                yield _parsed(where, line)


def _parsed(where: str, line: bytes) -> Row:
    try:
        return _row(where, json.loads(line))
    except (ValueError, RecursionError):
        return Row(where, {}, "it is no JSON")


def _row(where: str, value: object) -> Row:
    return Row(where, value) if isinstance(value, dict) else Row(where, {}, "it is no object with fields")


def _json_rows(file: Path, place: str, _: Collection[str]) -> Iterator[Row]:
    try:
        data = json.loads(read_regular(file, MAX_JSON_BYTES))
    except (ValueError, RecursionError):
        raise DamagedError("is no JSON") from None
    if not isinstance(data, list):
        raise DamagedError("holds no list of rows")
    for number, value in enumerate(data):
        yield _row(f"{place} row {number}", value)


_READERS: Mapping[str, Callable[[Path, str, Collection[str]], Iterator[Row]]] = {
    ".parquet": _parquet_rows,
    ".jsonl": _json_lines,
    ".json": _json_rows,
}
"""In this order a folder's files are preferred."""
