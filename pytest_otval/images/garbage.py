"""Which images of the store nobody needs: what no task reaches, what is not new, and what nobody makes now."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.images.inventory import is_locked, keys_of, remove_image
from pytest_otval.images.record import image_path, read_record, record_path


@dataclass(frozen=True, slots=True)
class Garbage:
    """An image that can go."""

    key: str
    base: str
    """As its record says; empty where there is none that can be read."""
    bytes: int
    made: float
    """When the newest of its files was written, in seconds since the epoch."""


def find_garbage(store: Path, reached: Set[str], before: float) -> list[Garbage]:
    """Return the images that are not ``reached``, lie below none that stays, and were made ``before`` a time.

    Files without a record that can be read count as well: no run takes them.
    """
    found, stays = {}, set(reached)
    for key in keys_of(store):
        record = read_record(store, key)
        paths = (record_path(store, key), image_path(store, key))
        garbage = Garbage(key, record.base if record else "", sum(map(_size, paths)), max(map(_made, paths)))
        if key not in reached and garbage.made < before and not is_locked(store, key):
            found[key] = garbage
        else:
            stays.add(key)
    for key in list(stays):
        record = read_record(store, key)
        stays.update(record.below if record else ())
    return [garbage for key, garbage in found.items() if key not in stays]


def remove_garbage(store: Path, garbage: Iterable[Garbage]) -> list[Garbage]:
    """Remove images; return those that went. One that was made anew since it was looked at stays. Raises OSError."""
    gone = []
    for one in garbage:
        newest = max(_made(record_path(store, one.key)), _made(image_path(store, one.key)))
        if newest <= one.made and remove_image(store, one.key):
            gone.append(one)
    return gone


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _made(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0
