"""Taking an image file into the store, so that tasks of one machine share it and `image verify` looks after it."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_otval.core import OtvalUsageError
from pytest_otval.images.bases import Base
from pytest_otval.images.bundle import copy_bytes, require_room
from pytest_otval.images.inventory import file_fault
from pytest_otval.images.locks import half_name, locked
from pytest_otval.images.model import ImageConfig
from pytest_otval.images.record import Record, image_path, lock_path, read_record, write_record
from pytest_otval.images.sif import SifError, squashfs_in_sif
from pytest_otval.images.steps import base_plan
from pytest_otval.task.packed.image import Image
from pytest_otval.task.packed.unpack import DamagedError
from pytest_otval.task.reading import NotReadableError, open_regular


def import_file(store: Path, file: Path) -> Record:
    """Copy a squashfs, or the one in a SIF file, into the store; return its record.

    Its identity is the squashfs's own content, so both forms of one image are one. Raises OtvalUsageError for what is
    no such file, Conclusion ``host-disk-full``.
    """
    store.mkdir(parents=True, exist_ok=True)
    half = half_name(store / "import.sqfs")
    try:
        content, size = _copy(store, file, half)
        _check(half)
        base = Base(f"file@sha256:{content}", ImageConfig(), file=file)
        key = base_plan(base, all_root=False).key
        with locked(lock_path(store, key)):
            known = read_record(store, key)
            if known is not None and not file_fault(image_path(store, key), known):
                return known
            record = Record(key, content, base.name, size, base.config, all_root=False)
            half.replace(image_path(store, key))
            write_record(store, record)
            return record
    except (NotReadableError, FileNotFoundError, SifError, DamagedError) as error:
        words = "is not there" if isinstance(error, FileNotFoundError) else error
        raise OtvalUsageError(f"{file} cannot be imported: {words}") from None
    finally:
        half.unlink(missing_ok=True)


def _copy(store: Path, file: Path, half: Path) -> tuple[str, int]:
    with os.fdopen(open_regular(file), "rb") as source, half.open("xb") as target:
        start, size = 0, os.fstat(source.fileno()).st_size
        if file.suffix == ".sif":
            start, size = squashfs_in_sif(source, size)
        require_room(store, size)
        source.seek(start)
        return copy_bytes(source, target, size), size


def _check(packed: Path) -> None:
    image = Image(packed)
    try:
        for _ in image.listing(image.root()):
            pass
    finally:
        image.close()
