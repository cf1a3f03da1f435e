"""Runtimes that are made without a container."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from pathlib import Path

from pytest_otval.images.pack import packing
from pytest_otval.runtimes.record import ROOT, Runtime
from pytest_otval.runtimes.store import Runtimes


def write_squashfs(target: Path, files: dict[str, str], links: dict[str, str] | None = None) -> Path:
    """Write a squashfs with files and links at absolute paths."""
    with (
        packing(target, all_root=True, folders=()) as stream,
        os.fdopen(os.dup(stream), "wb") as out,
        tarfile.open(fileobj=out, mode="w|") as tar,
    ):
        for name, text in files.items():
            header = tarfile.TarInfo(name.lstrip("/"))
            header.size = len(text.encode())
            tar.addfile(header, io.BytesIO(text.encode()))
        for name, goal in (links or {}).items():
            header = tarfile.TarInfo(name.lstrip("/"))
            header.type, header.linkname = tarfile.SYMTYPE, goal
            tar.addfile(header)
    return target


def put(
    runtimes: Runtimes, name: str = "tools", text: str = "x", made: str = "2026-01-01T00:00:00+00:00", python: str = ""
) -> Runtime:
    """Put a runtime with one file into a cache."""
    runtimes.cache.mkdir(parents=True, exist_ok=True)
    runtime_id = f"{name}-{'0' * 12}"
    half = write_squashfs(runtimes.half(runtime_id), {f"{ROOT}/{name}/file": text})
    digest = hashlib.sha256(half.read_bytes()).hexdigest()
    size = half.stat().st_size
    runtime = Runtime(digest, runtime_id, f"{ROOT}/{name}", size, "bootstrap:fake@0", "f" * 64, python, made)
    runtimes.publish(half, runtime)
    return runtime
