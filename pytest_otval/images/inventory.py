"""What lies in the store: how much it is, and whether each image is still what its record says."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.images.locks import locked_now
from pytest_otval.images.record import Record, image_path, lock_path, read_record, record_path
from pytest_otval.task.reading import NotReadableError, open_regular

KEY = re.compile(r"[0-9a-f]{64}")
SUFFIXES = (".json", ".sqfs")
"""An image is a file of each; the first is its record."""


@dataclass(frozen=True, slots=True)
class Use:
    """What a folder takes of a quota."""

    files: int
    """Folders count as well, as quotas count them."""
    bytes: int


def use_of(folder: Path) -> Use:
    """Return what lies in a folder; what vanishes meanwhile counts for nothing."""
    files = size = 0
    for root, folders, names in os.walk(folder):
        for name in (*folders, *names):
            with suppress(OSError):
                facts = os.lstat(f"{root}/{name}")
                files += 1
                size += 0 if stat.S_ISDIR(facts.st_mode) else facts.st_size
    return Use(files, size)


def keys_of(store: Path) -> list[str]:
    """Return the keys that a file of the store is named by, with a record or without, sorted."""
    paths = (Path(name) for name in (os.listdir(store) if store.is_dir() else ()))  # noqa: PTH208
    return sorted({path.stem for path in paths if path.suffix in SUFFIXES and KEY.fullmatch(path.stem)})


def is_locked(store: Path, key: str) -> bool:
    """Whether somebody makes the image now."""
    if not lock_path(store, key).exists():
        return False
    with locked_now(lock_path(store, key)) as free:
        return not free


def remove_image(store: Path, key: str) -> bool:
    """Remove an image's files, unless somebody makes it now; return whether they are gone. Raises OSError."""
    with locked_now(lock_path(store, key)) as free:
        if free:
            # Without its record an image is none: nobody takes one that is half removed.
            record_path(store, key).unlink(missing_ok=True)
            image_path(store, key).unlink(missing_ok=True)
    return free


class Verifier:
    """Says what is wrong with images; each file is read once, however many images lie on it."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._known: dict[str, str] = {}

    def fault(self, key: str) -> str:
        """Return what is wrong with an image or one below it, in one line; empty where all is right."""
        fault = self._own_fault(key)
        record = None if fault else read_record(self._store, key)
        for below in record.below if record else ():
            if self._own_fault(below):
                return f"below it, {below[:12]}: {self._own_fault(below)}"
        return fault

    def _own_fault(self, key: str) -> str:
        if key not in self._known:
            self._known[key] = self._look(key)
        return self._known[key]

    def _look(self, key: str) -> str:
        record = read_record(self._store, key)
        if record is None:
            there = os.path.lexists(record_path(self._store, key))
            return "the record cannot be read, or is of another version" if there else "there is no record"
        return file_fault(image_path(self._store, key), record)


def file_fault(path: Path, record: Record) -> str:
    """Return what is wrong with a packed file, beside what its record says of it; empty where all is right."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != record.bytes:
                return f"the packed file has {size} bytes in place of {record.bytes}"
            if hashlib.file_digest(file, "sha256").hexdigest() != record.content:
                return "the packed file has another content"
    except FileNotFoundError:
        return "the packed file is missing"
    except NotReadableError as error:
        return f"the packed file {error}"
    except OSError as error:
        return f"the packed file cannot be read: {error.strerror}"
    return ""
