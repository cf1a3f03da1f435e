"""From a place in a ledger line to the files it holds. A run folder may come from somebody else."""

from __future__ import annotations

import os
import shlex
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pytest_otval.evidence.folder import MAX_BYTES, MAX_FILE_BYTES, MAX_FILES, kept
from pytest_otval.evidence.members import EvidenceError, open_member
from pytest_otval.evidence.names import FOLDER, PLACE
from pytest_otval.task.reading import is_folder, target_within

_SPARE = 2
"""The folder itself and the file of what was left out."""


def files(run: Path, place: str) -> Iterator[tuple[str, bytes]]:
    """Yield relative path and content of each file of an entry, or of a loose folder below the run, in fixed order.

    Paths have no ``..`` and are not absolute. Raises EvidenceError, also after some files; OSError.
    """
    found = PLACE.fullmatch(place)
    if found is None:
        for entry in kept(_loose(run, place)):
            if entry.data is not None:
                yield entry.name, entry.data
        return
    path = run / found[1]
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise EvidenceError(f"{path} cannot be read: {error.strerror}") from None
    try:
        yield from _unpacked(handle, int(found[2]), int(found[3]))
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError) as error:
        raise EvidenceError(f"{path}: the entry at {found[2]} is damaged: {error}") from None
    finally:
        os.close(handle)


def _unpacked(handle: int, at: int, length: int) -> Iterator[tuple[str, bytes]]:
    stream = open_member(handle, at, length)
    top, total = None, 0
    with tarfile.open(fileobj=stream, mode="r|", encoding="utf-8", errors="surrogateescape") as tar:
        for number, member in enumerate(tar):
            path = PurePosixPath(member.name)
            top = path if top is None else top
            if number >= MAX_FILES + _SPARE or path.is_absolute() or ".." in path.parts or not path.is_relative_to(top):
                raise ValueError("it was not written by us")
            if not member.isreg():
                continue
            content = tar.extractfile(member)
            assert content is not None
            data = content.read(MAX_FILE_BYTES + 100)
            total += len(data)
            if path == top or total > 2 * MAX_BYTES:
                raise ValueError("it was not written by us")
            yield str(path.relative_to(top)), data


def extract(run: Path, place: str, into: Path) -> None:
    """Write the files of a place below ``into``, a folder that does not exist yet.

    Raises EvidenceError, OSError; FileExistsError where ``into`` exists.
    """
    into.mkdir(parents=True)
    for name, data in files(run, place):
        path = into / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(data)


def shown(run: Path, place: str) -> str:
    """Return what a person can type to see a place: a path, or a command that unpacks it and lists what it made."""
    found = PLACE.fullmatch(place)
    if found is None:
        return _short(_loose(run, place))
    archive = shlex.quote(_short(run / found[1]))
    return f"head -c {int(found[2]) + int(found[3])} {archive} | tail -c {found[3]} | tar xzvC /tmp"


def _loose(run: Path, place: str) -> Path:
    path = PurePosixPath(place)
    if "\0" in place or ".." in path.parts or path.parts[:1] != (FOLDER,):
        raise EvidenceError(f"{place!r} is no place of evidence")
    if target_within(run / path, run) is None or not is_folder(run / path):
        raise EvidenceError(f"{run / path} is no folder below {run / FOLDER}")
    return run / path


def _short(path: Path) -> str:
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)
