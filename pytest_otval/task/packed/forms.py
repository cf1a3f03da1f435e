"""Which files of a dataset folder hold packed tasks, told by names and, for Parquet, by the first words of its footer.

No library is imported here: every argument of every pytest run is looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path


class Form(StrEnum):
    """How the tasks of a dataset are packed."""

    PARQUET = "parquet"
    TAR = "tar"
    SQUASHFS = "squashfs"


FILE_OF = {Form.PARQUET: "tasks.parquet", Form.TAR: "tasks.tar", Form.SQUASHFS: "tasks.sqfs"}
"""What our writer calls the file. Tar and squashfs are known by this name alone."""

SHARDS = ".parquet"
SHARD_FOLDER = "data"
"""Parquet may be several files of any name, right in the dataset or in this folder of it."""

_MAGIC = b"PAR1"
_OUR_COLUMN = b"task_binary"
_SCHEMA_BYTES = 64 * 1024
"""The schema stands at the beginning of a Parquet footer."""


def packed_files(dataset: Path) -> dict[Form, list[Path]]:
    """Return the files that may hold the dataset's tasks, by form; shards in the order of their names."""
    found = {form: [dataset / FILE_OF[form]] for form in (Form.TAR, Form.SQUASHFS) if _is_file(dataset / FILE_OF[form])}
    shards = [*_shards(dataset), *_shards(dataset / SHARD_FOLDER)]
    return {Form.PARQUET: shards, **found} if shards else found


def is_packed(dataset: Path, marked: bool) -> bool:
    """Whether packed tasks lie in the folder.

    A Parquet file must have our columns. In a folder that is ``marked`` as a dataset one counts too that is damaged, or
    called as ours are, so that its user hears what is wrong with it.
    """
    files = packed_files(dataset)
    if files.keys() - {Form.PARQUET}:
        return True
    shards = files.get(Form.PARQUET)
    if not shards:
        return False
    schema = _schema(shards[0])
    return _OUR_COLUMN in (schema or b"") or (marked and (not schema or shards[0].name == FILE_OF[Form.PARQUET]))


def folder_of(file: Path) -> Path | None:
    """Return the dataset folder that a file of packed tasks belongs to; None where its name is no such file's."""
    if not _is_file(file):
        return None
    if file.suffix == SHARDS and file.parent.name == SHARD_FOLDER:
        return file.parent.parent
    return file.parent if file.suffix == SHARDS or file.name in FILE_OF.values() else None


def names_our_columns(file: Path) -> bool:
    """Whether a file is a Parquet file whose schema names the column of tasks."""
    return _OUR_COLUMN in (_schema(file) or b"")


def _schema(file: Path) -> bytes | None:
    """Return the beginning of a Parquet file's footer; None for what is no whole Parquet file."""
    try:
        with file.open("rb") as opened:
            end = opened.seek(0, os.SEEK_END)
            opened.seek(max(0, end - 8))
            length, magic = opened.read(4), opened.read(4)
            footer = int.from_bytes(length, "little")
            if magic != _MAGIC or footer > end - 8:
                return None
            opened.seek(end - 8 - footer)
            return opened.read(min(footer, _SCHEMA_BYTES))
    except OSError:
        return None


def _shards(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(SHARDS) and entry.name[0] != ".")
    except OSError:
        return
    yield from (folder / name for name in names if _is_file(folder / name))


def _is_file(path: Path) -> bool:
    # A link to a file is one: downloads are often links into a cache. A FIFO is none, and is never opened.
    return os.path.isfile(path)  # noqa: PTH113
