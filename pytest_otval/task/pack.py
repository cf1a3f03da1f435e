"""Packing the tasks of a dataset into one file, and unpacking them into folders.

Equal tasks give equal bytes: entries are sorted and have no owner and no time (for Parquet and squashfs as long as the
versions of their writers are equal too).
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, Protocol

from pytest_otval.core import NAME, Conclusion, OtvalUsageError
from pytest_otval.task.dataset import DATASET_TOML, MAX_TOML_BYTES
from pytest_otval.task.packed.forms import FILE_OF, Form
from pytest_otval.task.packed.unpack import Rules, refusal
from pytest_otval.task.reading import KINDS, NotReadableError, is_folder, open_regular, read_regular
from pytest_otval.task.source import FolderSource, TaskSource, source_of

Add = Callable[[str, Path], None]
"""Adds a task, by its name and its folder."""

MAX_ROW_BYTES = 1024**3
"""Of one task in Parquet, whose cells have less than 2 GiB."""
ROW_GROUP_BYTES = 4 * 1024 * 1024
ROW_GROUP_ROWS = 256
"""Row groups are small, so that one task is read without much else."""


def pack(dataset: Path, form: Form, out: Path, only: Collection[str] | None = None) -> int:
    """Write ``out`` with the dataset's dataset.toml and its tasks as one file; return the number of tasks.

    ``only`` names the tasks that are taken; None: all.
    Raises OtvalUsageError, and Conclusion ``bad-task`` for a task that no form can hold, ``missing-tool``.
    """
    source = _source(dataset)
    names = [name for name in source.names()[0] if only is None or name in only]
    for name in names:
        if not NAME.fullmatch(name):
            raise OtvalUsageError(f"task name {name!r} of {dataset}: only letters, digits and . _ - can be; rename it")
    writer = {Form.PARQUET: parquet_writer, Form.TAR: _tar_writer, Form.SQUASHFS: _squashfs_writer}[form]
    with _new_folder(out) as part:
        _copy_manifest(dataset, part)
        # A task that is packed now is unpacked first: a new form, or smaller row groups.
        with writer(part / FILE_OF[form]) as add, tempfile.TemporaryDirectory(prefix="otval-pack-") as scratch:
            for name in names:
                folder = source.folder(name, Path(scratch))
                try:
                    add(name, folder)
                except Conclusion as conclusion:
                    raise Conclusion(conclusion.reason, f"task {name}: {conclusion.headline}") from None
                if not isinstance(source, FolderSource):
                    shutil.rmtree(folder)
    return len(names)


def unpack_dataset(dataset: Path, out: Path) -> tuple[int, list[str]]:
    """Write ``out`` with the dataset's dataset.toml and its tasks as folders below ``tasks/``.

    Return the number of tasks and a line for each that must not be unpacked, which is left out.
    Raises OtvalUsageError, Conclusion ``host-disk-full``.
    """
    source = _source(dataset)
    if isinstance(source, FolderSource):
        raise OtvalUsageError(f"the tasks of {dataset} are folders already")
    refused = []
    names = source.names()[0]
    with _new_folder(out) as part:
        _copy_manifest(dataset, part)
        (part / "tasks").mkdir()
        for name in names:
            try:
                source.folder(name, part / "unpacked").rename(part / "tasks" / name)
            except Conclusion as conclusion:
                if conclusion.reason != "bad-task":
                    raise
                refused.append(f"task {name!r}: {conclusion.headline}")
        shutil.rmtree(part / "unpacked", ignore_errors=True)
    return len(names) - len(refused), refused


def _source(dataset: Path) -> TaskSource:
    source = source_of(dataset)
    try:
        found = source.names()[0]
    except OSError as error:
        raise OtvalUsageError(f"dataset {dataset}: {error.strerror}") from None
    if not found:
        raise OtvalUsageError(f"{dataset} has no tasks: give the folder that has them, as $OT_WORKSPACE/datasets/NAME")
    return source


@contextmanager
def _new_folder(out: Path) -> Iterator[Path]:
    """Give a folder to write to, which becomes ``out`` when all is well, and is gone otherwise."""
    if os.path.lexists(out):
        raise OtvalUsageError(f"{out} is there already: name a new folder")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise OtvalUsageError(f"{out} cannot be made: {error.strerror}") from None
    try:
        part.chmod(0o755)
        yield part
        part.rename(out)
    except BaseException as error:
        shutil.rmtree(part, ignore_errors=True)
        if isinstance(error, OSError):
            raise OtvalUsageError(f"{out} cannot be written: {error.strerror or error}") from None
        raise


def _copy_manifest(dataset: Path, folder: Path) -> None:
    try:
        manifest = read_regular(dataset / DATASET_TOML, MAX_TOML_BYTES)
    except FileNotFoundError:
        return
    except NotReadableError as error:
        raise OtvalUsageError(f"{dataset / DATASET_TOML} {error}") from None
    (folder / DATASET_TOML).write_bytes(manifest)


@contextmanager
def _tar_writer(file: Path) -> Iterator[Add]:
    with file.open("wb") as opened, _archive(opened) as archive:

        def add(name: str, folder: Path) -> None:
            archive.addfile(_info(name, tarfile.DIRTYPE))
            _add_task(archive, folder, f"{name}/")

        yield add


@contextmanager
def _squashfs_writer(file: Path) -> Iterator[Add]:
    from pytest_otval.task.packed.mksquashfs import squashing

    with squashing(file) as stream, _archive(stream) as archive:

        def add(name: str, folder: Path) -> None:
            archive.addfile(_info(name, tarfile.DIRTYPE))
            _add_task(archive, folder, f"{name}/")

        yield add


class AddRow(Protocol):
    """Adds a task to a Parquet file."""

    def __call__(self, name: str, folder: Path, /, *more: str) -> None:
        """``more`` are the values of further columns."""


class AddPacked(Protocol):
    """Adds a packed task to a Parquet file."""

    def __call__(self, name: str, packed: bytes, /, *more: str) -> None:
        """``more`` are the values of further columns."""


@contextmanager
def parquet_writer(file: Path, more: Sequence[str] = ()) -> Iterator[AddRow]:
    """Give what adds tasks to a new Parquet file, which is whole at the end; ``more`` are further columns of text.

    Raises OSError.
    """
    with parquet_rows(file, more) as add_packed:

        def add(name: str, folder: Path, /, *values: str) -> None:
            add_packed(name, packed_task(folder), *values)

        yield add


@contextmanager
def parquet_rows(file: Path, more: Sequence[str] = (), notes: str = "") -> Iterator[AddPacked]:
    """Give what adds packed tasks to a new Parquet file, which is whole at the end; ``more`` are further columns.

    ``notes`` is a text that ``parquet_notes`` returns without reading tasks. Raises OSError.
    """
    import pyarrow
    from pyarrow import parquet

    from pytest_otval.task.packed.parquet import NAMES, NOTES, TASKS

    texts = [(name, pyarrow.string()) for name in more]
    schema = pyarrow.schema([(NAMES, pyarrow.string()), (TASKS, pyarrow.binary()), *texts])
    rows: list[tuple[str, bytes, *tuple[str, ...]]] = []
    options = {"compression": "zstd", "use_dictionary": False, "write_statistics": [NAMES], "write_page_checksum": True}
    with parquet.ParquetWriter(file, schema, **options) as writer:

        def flush() -> None:
            if not rows:
                return
            columns = [list(column) for column in zip(*rows, strict=True)]
            writer.write_table(pyarrow.table(columns, schema=schema), row_group_size=len(rows))
            rows.clear()

        def add(name: str, packed: bytes, /, *values: str) -> None:
            size = sum(len(row[1]) for row in rows) + len(packed)
            if len(rows) == ROW_GROUP_ROWS or size > ROW_GROUP_BYTES:
                flush()
            rows.append((name, packed, *values))

        yield add
        flush()
        if notes:
            writer.add_key_value_metadata({NOTES: notes})


def packed_task(folder: Path) -> bytes:
    """Return a task as one archive. Raises Conclusion ``bad-task`` for what could not be unpacked again."""
    buffer = io.BytesIO()
    with _archive(buffer) as archive:
        _add_task(archive, folder, "")
    if buffer.tell() > MAX_ROW_BYTES:
        raise Conclusion("bad-task", "it is larger than a GiB, which Parquet cannot hold: use tar or squashfs")
    return buffer.getvalue()


def _archive(file: BinaryIO) -> tarfile.TarFile:
    # GNU's format holds any name as the bytes it is.
    return tarfile.open(
        fileobj=file, mode="w|", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape", bufsize=1 << 20
    )


def _add_task(archive: tarfile.TarFile, folder: Path, prefix: str) -> None:
    """Add all entries below a folder. Raises Conclusion ``bad-task`` for what could not be unpacked again."""
    rules = Rules()
    for path, entry in _entries(folder, ""):
        raw = os.fsencode(path)
        rules.checked(raw, raw)
        rules.count_entry(raw)
        try:
            mode = entry.lstat().st_mode
            if stat.S_ISREG(mode):
                _add_file(archive, entry, prefix + path, partial(rules.count_bytes, named=raw))
            elif stat.S_ISDIR(mode):
                archive.addfile(_info(prefix + path, tarfile.DIRTYPE))
            elif stat.S_ISLNK(mode):
                archive.addfile(_info(prefix + path, tarfile.SYMTYPE, target=os.readlink(entry)))  # noqa: PTH115
            elif stat.S_ISFIFO(mode):
                archive.addfile(_info(prefix + path, tarfile.FIFOTYPE, executable=False))
            else:
                raise refusal(raw, f"is {KINDS[stat.S_IFMT(mode)]}, which a task cannot have")
        except (OSError, NotReadableError) as error:
            raise refusal(raw, str(getattr(error, "strerror", None) or error)) from None


def _entries(folder: Path, path: str) -> Iterator[tuple[str, Path]]:
    """Yield paths within the task, and the entries themselves: a folder before what it holds, sorted by bytes."""
    try:
        names = sorted(os.listdir(folder), key=os.fsencode)  # noqa: PTH208
    except OSError as error:
        raise refusal(os.fsencode(path.rstrip("/") or "."), f"cannot be listed: {error.strerror}") from None
    for name in names:
        entry = folder / name
        yield path + name, entry
        if is_folder(entry):
            yield from _entries(entry, f"{path}{name}/")


def _add_file(archive: tarfile.TarFile, file: Path, name: str, count: Callable[[int], None]) -> None:
    with os.fdopen(open_regular(file), "rb") as opened:
        facts = os.fstat(opened.fileno())
        count(facts.st_size)
        info = _info(name, tarfile.REGTYPE, executable=bool(facts.st_mode & stat.S_IXUSR))
        info.size = facts.st_size
        archive.addfile(info, opened)


def _info(name: str, kind: bytes, executable: bool = True, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname = kind, 0o755 if executable else 0o644, target
    return info
