"""Tasks in Parquet files: a row a task, column ``path`` its name, column ``task_binary`` a tar archive of it.

Names are read without the other column. A file may have all its rows in one group, so a group is gone through row by
row, which takes the memory of one page; who asks for tasks in their order, as a run does, goes through it once.
"""

from __future__ import annotations

import io
import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet, types

from pytest_otval.core import OtvalUsageError
from pytest_otval.task.packed.base import PackedSource, unusable
from pytest_otval.task.packed.tarball import task_entries
from pytest_otval.task.packed.unpack import DamagedError, Entry

NAMES = "path"
TASKS = "task_binary"
NOTES = "otval"
"""Key of a text about the tasks, in the file's own metadata."""

_READ_AHEAD = 1024 * 1024


class ParquetSource(PackedSource):
    """One or more Parquet files, whose rows count on from one to the next."""

    def __init__(self, dataset: Path, files: list[Path]) -> None:
        super().__init__(dataset)
        self._files = files
        self._starts: list[int] = []
        self._rows: dict[str, int] = {}
        self._cursor: _Cursor | None = None

    def anchor(self, name: str) -> Path:
        """Return the file with the task's row."""
        return self._place(self._rows[name])[0] if self.has(name) else self._files[0]

    def _read_names(self) -> tuple[set[str], set[str]]:
        names: list[str] = []
        self._starts = []
        for file in self._files:
            self._starts.append(len(names))
            names += map(_normal, _names(file))
        self._rows = dict(zip(names, range(len(names)), strict=True))
        if "" in self._rows:
            raise OtvalUsageError(f"{self._shown(self._rows[''])} has no `{NAMES}`: give the task a name")
        if len(self._rows) < len(names):
            raise OtvalUsageError(self._twice(names))
        # What stands in a row is not looked at, so all are tasks, but for hidden ones, as in a folder of tasks.
        return {name for name in names if name[0] != "."}, set()

    def _entries(self, name: str) -> Iterator[Entry]:
        file, row = self._place(self._rows[name])
        if self._cursor is None or self._cursor.file != file:
            self._cursor = _Cursor(file)
        yield from task_entries(io.BytesIO(self._cursor.task(row)), name)

    def _place(self, row: int) -> tuple[Path, int]:
        index = bisect_right(self._starts, row) - 1
        return self._files[index], row - self._starts[index]

    def _shown(self, row: int) -> str:
        file, within = self._place(row)
        return f"{os.path.relpath(file)} row {within}"

    def _twice(self, names: list[str]) -> str:
        row, name = next((row, name) for row, name in enumerate(names) if self._rows[name] != row)
        return f"two tasks are called {name!r}: {self._shown(row)} and {self._shown(self._rows[name])}; remove one"


def _normal(name: str | None) -> str:
    return (name or "").removeprefix("./").rstrip("/")


class _Cursor:
    """Reads tasks of one file; going on to a later row of the same group costs only the rows between."""

    def __init__(self, file: Path) -> None:
        self.file = file
        with as_damage():
            self._parquet = open_parquet(file)
            groups = range(self._parquet.metadata.num_row_groups)
            sizes = (self._parquet.metadata.row_group(group).num_rows for group in groups)
            self._starts = [0, *accumulate(sizes)]
        self._batches: Iterator[Any] = iter(())
        self._group = -1
        self._next = 0

    def task(self, row: int) -> bytes:
        """Return the archive in a row. Raises DamagedError."""
        group = bisect_right(self._starts, row) - 1
        with as_damage():
            if group != self._group or row < self._next:
                self._group, self._next = group, self._starts[group]
                self._batches = self._parquet.iter_batches(1, [group], [TASKS], use_threads=False)
            try:
                while self._next <= row:
                    batch = next(self._batches)
                    self._next += 1
            except BaseException:
                self._group = -1
                raise
            data = batch.column(0)[0].as_py()
        if not isinstance(data, bytes):
            raise DamagedError(f"row {row} of {self.file.name} has no `{TASKS}`")
        return data


def open_parquet(file: Path) -> parquet.ParquetFile:
    """Open a file so that a group is read in pieces: foreign files can have one group of gigabytes."""
    return parquet.ParquetFile(file, buffer_size=_READ_AHEAD, pre_buffer=False, page_checksum_verification=True)


def parquet_notes(file: Path) -> str:
    """Return the text about its tasks that a file was written with; "" where it has none. Raises OtvalUsageError."""
    try:
        with as_damage(), open_parquet(file) as opened:
            return bytes((opened.metadata.metadata or {}).get(NOTES.encode(), b"")).decode()
    except (DamagedError, OSError) as error:
        raise unusable(file, error) from None


def _names(file: Path) -> list[str | None]:
    """Return the names in a file, by row. Raises OtvalUsageError."""
    try:
        with as_damage(), open_parquet(file) as opened:
            schema = opened.schema_arrow
            for column, kinds in ((NAMES, _TEXT), (TASKS, _BINARY)):
                index = schema.get_field_index(column)
                if index < 0 or not any(kind(_plain(schema.field(index).type)) for kind in kinds):
                    what = "text" if column == NAMES else "binary"
                    raise DamagedError(f"it has no column `{column}` of {what}")
            names: list[str | None] = opened.read([NAMES], use_threads=False).column(0).to_pylist()
            return names
    except (DamagedError, OSError) as error:
        raise unusable(file, error) from None


_TEXT = (types.is_string, types.is_large_string, types.is_string_view)
_BINARY = (types.is_binary, types.is_large_binary, types.is_binary_view)


def _plain(kind: Any) -> Any:
    return kind.value_type if types.is_dictionary(kind) else kind


@contextmanager
def as_damage() -> Iterator[None]:
    """Turn what pyarrow raises for a file's content into DamagedError; errors of the host stay."""
    try:
        yield
    except (pyarrow.ArrowException, StopIteration, UnicodeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        text = " ".join(ascii(str(error))[1:-1].split())
        raise DamagedError(f"{text[:160]}" or type(error).__name__) from None
