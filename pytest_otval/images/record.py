"""``KEY.json``: what the store knows of an image. It is written last, so it also says that the image is complete."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_otval.core import Conclusion, printable
from pytest_otval.images.locks import write_whole
from pytest_otval.images.model import Files, ImageConfig

FORMAT = 3
"""Of this file: a record of another format is no record, and its image is made anew."""


@dataclass(frozen=True, slots=True)
class Record:
    """One image of the store."""

    key: str
    content: str
    """sha256 of ``KEY.sqfs``."""
    base: str
    """The base as it was resolved; see ``model.Image``."""
    bytes: int
    """Size of ``KEY.sqfs``."""
    config: ImageConfig
    all_root: bool
    """Whether every file is root's, since uids were not mapped where it was made."""
    below: tuple[str, ...] = ()
    """Keys of the images on which this one lies, lowest first; empty for a whole root file system."""
    below_contents: tuple[str, ...] = ()
    """Their contents when this one was made: over other bytes it would not be the same image."""
    seconds: float = 0.0
    """What the steps of its build took, those of the images below included."""
    packages: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Versions by name, for each of ``dpkg``, ``pip`` and ``npm`` that the image has."""
    log: str = ""
    """The end of what the steps said."""


def record_path(store: Path, key: str) -> Path:
    """Return where the record of a key stands."""
    return store / f"{key}.json"


def lock_path(store: Path, key: str) -> Path:
    """Return the lock file of a key."""
    return store / f"{key}.lock"


def image_path(store: Path, key: str) -> Path:
    """Return where the packed file of a key stands."""
    return store / f"{key}.sqfs"


def read_record(store: Path, key: str) -> Record | None:
    """Return the record of a key; None where there is none, or none that can be read."""
    path = record_path(store, key)
    try:
        facts = path.stat()
        record = _parsed(path, facts.st_ino, facts.st_mtime_ns, facts.st_size)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return record if record.key == key else None


@lru_cache(maxsize=256)
def _parsed(path: Path, inode: int, mtime_ns: int, size: int) -> Record:
    """Records are replaced as a whole, and that of a base is asked for with each image over it."""
    return _from_dict(json.loads(path.read_text(encoding="utf-8")))


def write_record(store: Path, record: Record) -> None:
    """Write the record of an image whose packed file is in place. Raises OSError."""
    values: dict[str, Any] = {"format": FORMAT, **asdict(record), "config": record.config.as_dict()}
    write_whole(record_path(store, record.key), f"{json.dumps(values, indent=1, sort_keys=True)}\n".encode())


def usable_record(store: Path, key: str) -> Record | None:
    """Return the record of a key whose image is there; None for one that is missing or damaged.

    All its files are there in their full size, those below with the content it was made over. No file but the records
    is read.
    """
    record = read_record(store, key)
    return record if record is not None and _is_usable(store, record) else None


def _is_usable(store: Path, record: Record) -> bool:
    if not _has_its_size(store, record):
        return False
    for key, content in zip(record.below, record.below_contents, strict=True):
        below = read_record(store, key)
        if below is None or below.content != content or not _has_its_size(store, below):
            return False
    return True


def _has_its_size(store: Path, record: Record) -> bool:
    try:
        return image_path(store, record.key).stat().st_size == record.bytes
    except OSError:
        return False


def image_files(store: Path, record: Record) -> Files:
    """Return the files of an image, lowest first."""
    return tuple(image_path(store, key) for key in (*record.below, record.key))


def records(store: Path) -> Iterator[Record]:
    """Yield all records of a store, by key. The files are the index; there is no other."""
    for path in sorted(store.glob("[0-9a-f]*.json")):
        record = read_record(store, path.stem)
        if record is not None:
            yield record


def find_record(store: Path, key: str) -> Record:
    """Return the one record whose key begins with ``key``. Raises Conclusion ``base-unavailable``: none or several."""
    found = [path.stem for path in store.glob(f"{key}*.json")] if key.isalnum() else []
    record = read_record(store, found[0]) if len(found) == 1 else None
    if record is None:
        how = "no image" if not found else f"{len(found)} images" if len(found) > 1 else "no readable record"
        raise Conclusion("base-unavailable", f"{store} has {how} {printable(key)}")
    return record


def _from_dict(values: dict[str, Any]) -> Record:
    if values.pop("format", None) != FORMAT:
        raise ValueError("another format")
    record = Record(**values)
    config = ImageConfig.from_dict(values["config"])
    if len(record.below) != len(record.below_contents):
        raise ValueError("an image below without its content")
    below, contents = tuple(record.below), tuple(record.below_contents)
    return replace(record, config=config, below=below, below_contents=contents)
