"""Whether a runtime that came from elsewhere is what its manifest says, before anybody may take it from the cache."""

from __future__ import annotations

from pathlib import Path

from pytest_otval.images.bases import file_digest
from pytest_otval.runtimes.contents import Contents
from pytest_otval.runtimes.record import Runtime
from pytest_otval.task.packed.unpack import DamagedError


def fault_of(squashfs: Path, runtime: Runtime) -> str:
    """Return what is wrong with a squashfs, in one line; empty where it is what the manifest ``runtime`` says.

    Raises OSError.
    """
    if file_digest(squashfs) != runtime.checksum:
        return "the squashfs does not match its checksum"
    try:
        contents = Contents(squashfs, runtime.path)
    except LookupError:
        return f"the squashfs has no folder {runtime.path}"
    except DamagedError:
        return "the squashfs cannot be read"
    if not contents.alone:
        return f"the squashfs has more than the folder {runtime.path}"
    if contents.files != runtime.files:
        return "the files of the squashfs are not those of its manifest"
    return ""
