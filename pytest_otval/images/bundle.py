"""A bundle: images in a folder, to be published beside a dataset.

``KEY.sqfs`` and ``KEY.json`` of each image and of all below it, as they are in a store, and ``SHA256SUMS`` over them,
which ``sha256sum -c`` reads. Only the store's images can be exported, and what runs in a container writes to a layer
of its own and never to them, so nothing that an agent touched gets in.

A bundle is hostile: nothing enters the store before all of it was verified, and what a record says of its packed file
must hold. That a key's image is made of what the key stands for cannot be verified; it is the publisher's word.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from pydantic import TypeAdapter

from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.images.inventory import KEY
from pytest_otval.images.locks import half_name, locked_now
from pytest_otval.images.record import FORMAT, Record, image_path, lock_path, read_record, record_path, write_record
from pytest_otval.task.reading import NotReadableError, open_regular, read_regular

SUMS = "SHA256SUMS"
MAX_RECORD_BYTES = 4 << 20
MAX_SUMS_BYTES = 1 << 20
MAX_BELOW = 16

_LINE = re.compile(rf"({KEY.pattern})  (({KEY.pattern})\.(?:json|sqfs))")
_BLOCK = 1 << 20
_RECORD = TypeAdapter(Record)


@dataclass(frozen=True, slots=True)
class Imported:
    """An image of a bundle."""

    record: Record
    new: bool
    """It was not in the store before."""


def export_bundle(store: Path, records: Sequence[Record], folder: Path) -> list[Record]:
    """Write images and those below them as the new folder ``folder``; return their records, lowest first.

    Raises OtvalUsageError where the folder exists or cannot be written, Conclusion ``base-unavailable`` where an image
    is not as its record says.
    """
    wanted: dict[str, Record] = {}
    for record in records:
        for key in record.below:
            wanted[key] = _required(store, key)
        wanted[record.key] = record
    with _new_folder(folder) as part:
        sums = [line for record in wanted.values() for line in _export(store, record, part)]
        (part / SUMS).write_text("".join(sums), encoding="ascii")
    return list(wanted.values())


def _export(store: Path, record: Record, part: Path) -> Iterator[str]:
    fault = _copy_file(image_path(store, record.key), image_path(part, record.key), record)
    if fault:
        raise Conclusion("base-unavailable", f"{record.key[:12]}: the packed file {fault}: `image verify` tells more")
    yield f"{record.content}  {record.key}.sqfs\n"
    # What the steps said may tell of this site, its mirrors and its proxies.
    write_record(part, replace(record, log=""))
    yield f"{hashlib.sha256(record_path(part, record.key).read_bytes()).hexdigest()}  {record.key}.json\n"


def import_bundle(store: Path, folder: Path) -> list[Imported]:
    """Take the images of a bundle into the store; return them, lowest first.

    Raises OtvalUsageError for what is no whole bundle, Conclusion ``host-disk-full``. The store then is as it was.
    """
    records = _read_bundle(folder)
    with ExitStack() as stack:
        for record in records:
            if not stack.enter_context(locked_now(lock_path(store, record.key))):
                raise OtvalUsageError(f"{record.key[:12]} is being made now: import {folder} when that is done")
        new = [record for record in records if _is_missing(store, record)]
        require_room(store, sum(record.bytes for record in new))
        halves = []
        for record in new:
            half = half_name(image_path(store, record.key))
            stack.callback(half.unlink, missing_ok=True)
            fault = _copy_file(image_path(folder, record.key), half, record)
            if fault:
                raise _bad(folder, f"{record.key}.sqfs {fault}")
            halves.append(half)
        for record, half in zip(new, halves, strict=True):
            half.replace(image_path(store, record.key))
            write_record(store, record)
    return [Imported(record, record in new) for record in records]


def _read_bundle(folder: Path) -> list[Record]:
    """Return the records of a bundle, lowest first, all of whose claims hold."""
    sums = _read_sums(folder)
    records: dict[str, Record] = {}
    for key in sorted({name.partition(".")[0] for name in sums}):
        for suffix in ("json", "sqfs"):
            if f"{key}.{suffix}" not in sums:
                raise _bad(folder, f"{SUMS} has no line for {key}.{suffix}")
        record = _read_record(folder, key, sums[f"{key}.json"])
        if record.content != sums[f"{key}.sqfs"]:
            raise _bad(folder, f"{key}.json and {SUMS} name two contents of {key}.sqfs")
        if _size(image_path(folder, key)) != record.bytes:
            raise _bad(folder, f"{key}.sqfs is missing or has another size than its record says")
        records[key] = record
    for record in records.values():
        for below, content in zip(record.below, record.below_contents, strict=True):
            if below not in records or records[below].content != content:
                raise _bad(folder, f"{record.key} lies on {below}, which is not in it")
    return sorted(records.values(), key=lambda record: (len(record.below), record.key))


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return -1


def _read_sums(folder: Path) -> dict[str, str]:
    try:
        lines = read_regular(folder / SUMS, MAX_SUMS_BYTES).decode("ascii").splitlines()
    except FileNotFoundError:
        raise _bad(folder, f"there is no {SUMS}") from None
    except NotReadableError as error:
        raise _bad(folder, f"{SUMS} {error}") from None
    except UnicodeDecodeError:
        raise _bad(folder, f"{SUMS} is no ASCII text") from None
    found = {}
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in found:
            raise _bad(folder, f"{SUMS}:{number} is not the line of one file of an image")
        found[match[2]] = match[1]
    if not found:
        raise _bad(folder, f"{SUMS} is empty")
    return found


def _read_record(folder: Path, key: str, digest: str) -> Record:
    try:
        data = read_regular(record_path(folder, key), MAX_RECORD_BYTES)
    except FileNotFoundError:
        raise _bad(folder, f"{key}.json is missing") from None
    except NotReadableError as error:
        raise _bad(folder, f"{key}.json {error}") from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise _bad(folder, f"{key}.json is not what {SUMS} says")
    try:
        if json.loads(data)["format"] != FORMAT:
            raise _bad(folder, f"{key}.json is of another version: export the bundle anew")
        record = _RECORD.validate_json(data, strict=True)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _bad(folder, f"{key}.json is no record of an image") from None
    keys = (record.key, *record.below)
    right = record.key == key and all(KEY.fullmatch(one) for one in keys) and len(set(keys)) == len(keys)
    if not right or not KEY.fullmatch(record.content) or len(record.below) > MAX_BELOW or record.bytes < 0:
        raise _bad(folder, f"{key}.json is no record of this image")
    return record


def _is_missing(store: Path, record: Record) -> bool:
    own = read_record(store, record.key)
    if own is None:
        return True
    if own.content != record.content:
        raise OtvalUsageError(
            f"{record.key[:12]} is in the store already, made here with another content: to take the bundle's, "
            f"remove {record_path(store, record.key)} first"
        )
    return False


def _copy_file(source: Path, target: Path, record: Record) -> str:
    """Copy a packed file that must be as its record says; return what is wrong with it, "" where all is right."""
    try:
        with os.fdopen(open_regular(source), "rb") as before, target.open("xb") as after:
            if os.fstat(before.fileno()).st_size != record.bytes:
                return "has another size than its record says"
            content = copy_bytes(before, after, record.bytes)
    except FileNotFoundError:
        return "is missing"
    except NotReadableError as error:
        return str(error)
    return "" if content == record.content else "has another content than its record says"


def copy_bytes(before: BinaryIO, after: BinaryIO, count: int) -> str:
    """Copy so many bytes and have them written to the disk; return their sha256 as 64 hex digits."""
    digest = hashlib.sha256()
    while count and (block := before.read(min(count, _BLOCK))):
        after.write(block)
        digest.update(block)
        count -= len(block)
    after.flush()
    os.fsync(after.fileno())
    return digest.hexdigest()


def _required(store: Path, key: str) -> Record:
    record = read_record(store, key)
    if record is None:
        raise Conclusion("base-unavailable", f"{key[:12]}, on which the image lies, is not in the store")
    return record


def require_room(store: Path, size: int) -> None:
    """Raise Conclusion ``host-disk-full`` where so many bytes have no place."""
    free = shutil.disk_usage(store).free
    if size > free:
        raise Conclusion("host-disk-full", f"{store} has {free >> 20} MiB left, the images need {size >> 20} MiB")


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """Give a folder to write to, which becomes ``folder`` when all is well, and is gone otherwise."""
    if os.path.lexists(folder):
        raise OtvalUsageError(f"{folder} is there already: name a new folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise OtvalUsageError(f"{folder} cannot be made: {error.strerror}") from None
    try:
        yield part
        part.chmod(0o755)
        part.rename(folder)
    except OSError as error:
        raise OtvalUsageError(f"{folder} cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(FileNotFoundError):
            shutil.rmtree(part)


def _bad(folder: Path, why: str) -> OtvalUsageError:
    return OtvalUsageError(f"{folder} is no whole bundle of images: {why}")
