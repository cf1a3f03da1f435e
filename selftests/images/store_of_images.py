"""A store of tiny real images for selftests, made without a container."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from pytest_otval.images.model import ImageConfig
from pytest_otval.images.record import Record, image_path, read_record, write_record


def key_of(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def add_image(store: Path, number: int, content: bytes = b"packed", **facts) -> Record:
    """Put an image into the store; its packed file holds any bytes."""
    store.mkdir(parents=True, exist_ok=True)
    key = key_of(number)
    image_path(store, key).write_bytes(content)
    told = {"base": "bootstrap:x@1", "config": ImageConfig(), "all_root": False, **facts}
    told["below_contents"] = tuple(read_record(store, below).content for below in told.get("below", ()))
    record = Record(key=key, content=hashlib.sha256(content).hexdigest(), bytes=len(content), **told)
    write_record(store, record)
    return record


def packed(folder: Path) -> bytes:
    """Return the squashfs of a folder."""
    target = folder.with_name(f"{folder.name}.packed")
    argv = ["mksquashfs", folder, target, "-noappend", "-quiet", "-no-progress", "-comp", "zstd", "-all-root"]
    subprocess.run(argv, check=True, capture_output=True)
    return target.read_bytes()
