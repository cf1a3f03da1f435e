"""Writing SIF files, Apptainer's own form of an image. What it holds is what the store holds, byte for byte."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sh

from pytest_otval.core import Conclusion, OtvalUsageError

_ARCHITECTURE = {"x86_64": 2, "aarch64": 4}
_PARTITION, _JSON, _SQUASHFS, _PRIMARY, _OVERLAY = 4, 6, 1, 2, 4
"""As ``apptainer sif add`` numbers them."""


def write_sif(files: Sequence[Path], about: Sequence[Path], target: Path) -> None:
    """Write the squashfs files of an image, lowest first, as the new SIF file ``target``, with JSON files about it.

    The first is its root, the others are overlays, which Apptainer mounts over it by itself. Raises OtvalUsageError
    where the file exists or cannot be written, Conclusion ``missing-tool``.
    """
    if os.path.lexists(target):
        raise OtvalUsageError(f"{target} is there already: name a new file")
    program = shutil.which("apptainer")
    if program is None:
        raise Conclusion("missing-tool", "apptainer is not on PATH: run ./setup.sh as root, or ask an administrator")
    options: dict[str, Any] = {"_tty_out": False, "_new_session": True}
    run = sh.Command(program).bake("--nocolor", "--silent", "sif", **options)
    kind = ["--datatype", _PARTITION, "--partfs", _SQUASHFS, "--partarch", _ARCHITECTURE[platform.machine()]]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as work:
            part = Path(work) / "part.sif"
            run("new", part)
            for number, file in enumerate(files):
                run("add", part, file, *kind, "--parttype", _OVERLAY if number else _PRIMARY, "--groupid", 1)
            for file in about:
                run("add", part, file, "--datatype", _JSON)
            part.chmod(0o644)
            part.rename(target)
    except sh.ErrorReturnCode as error:
        words = error.stderr.decode(errors="replace").strip().splitlines()
        last = words[-1] if words else "no reason given"
        raise OtvalUsageError(f"{target} cannot be written: {last}") from None
    except OSError as error:
        raise OtvalUsageError(f"{target} cannot be written: {error.strerror or error}") from None
