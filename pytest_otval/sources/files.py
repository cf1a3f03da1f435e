"""Trees of files in memory, read from source archives, and folders written from them."""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pytest_otval.images.locks import write_whole

MAX_SDIST_BYTES = 64 * 1024 * 1024
"""Unpacked size above which a source archive is refused."""


class SourceError(Exception):
    """Something a dataset is made of cannot be had or used. The text is one line for the user."""


@dataclass(frozen=True, slots=True)
class File:
    """A regular file."""

    content: bytes
    executable: bool = False


Files = dict[str, File]
"""Files by path, relative and with ``/``."""


def read_sdist(archive: str, content: bytes) -> Files:
    """Return the regular files of a source archive of that name, below its one top folder. Nothing is unpacked to disk.

    Links and special files are left out. Raises SourceError on an unreadable archive, on a path that leaves the top
    folder, and above MAX_SDIST_BYTES.
    """
    files: Files = {}
    total = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as tar:
            for member in tar:
                if not member.isreg():
                    continue
                total += member.size
                if total > MAX_SDIST_BYTES:
                    raise SourceError(f"{archive}: unpacks to more than {MAX_SDIST_BYTES} bytes")
                stream = tar.extractfile(member)
                assert stream is not None, "a regular file has content"
                files[_below_top(archive, member.name)] = File(stream.read(), bool(member.mode & 0o111))
    except (tarfile.TarError, EOFError, OSError) as error:
        why = str(error).partition("\n")[0] or type(error).__name__
        raise SourceError(f"{archive}: no readable archive ({why})") from error
    return files


def _below_top(archive: str, name: str) -> str:
    parts = PurePosixPath(name).parts
    if len(parts) < 2 or parts[0] == "/" or ".." in parts:
        raise SourceError(f"{archive}: holds {name!r}, which is not below its top folder")
    return "/".join(parts[1:])


def below(path: str, tops: Iterable[str]) -> bool:
    """Tell whether ``path`` is one of ``tops`` or lies below one."""
    return any(path == top or path.startswith(f"{top}/") for top in tops)


def under(prefix: str, files: Mapping[str, File]) -> Files:
    """Return the files with ``prefix`` and ``/`` before each path."""
    return {f"{prefix}/{path}": file for path, file in files.items()}


def text(content: str, *, executable: bool = False) -> File:
    """Return a file with this text in UTF-8."""
    return File(content.encode(), executable)


def publish_folder(files: Mapping[str, File], target: Path) -> None:
    """Write ``files`` as the folder ``target``, in place of what is there: all of it or, when interrupted, none.

    Modes are 0755 and 0644 whatever the umask, so equal files always make equal folders.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-", ignore_cleanup_errors=True) as scratch:
        made = Path(scratch) / "made"
        write_folder(files, made)
        if target.is_symlink() or target.exists():
            target.rename(Path(scratch) / "replaced")
        made.rename(target)


def write_folder(files: Mapping[str, File], folder: Path) -> None:
    """Write ``files`` as a new folder, with the same modes. Raises OSError, also where it is there."""
    # By texts and few calls: pathlib would take most of the time.
    root = f"{folder}/"
    _make_folder(root)
    for above in sorted({path[:place] for path in files for place, sign in enumerate(path) if sign == "/"}):
        _make_folder(root + above)
    for path, file in files.items():
        mode = 0o755 if file.executable else 0o644
        descriptor = os.open(root + path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as opened:
            os.fchmod(descriptor, mode)
            opened.write(file.content)


def _make_folder(folder: str) -> None:
    os.mkdir(folder)  # noqa: PTH102
    os.chmod(folder, 0o755)  # noqa: PTH101


def publish_file(content: bytes, target: Path) -> None:
    """Write a file whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, content, 0o644)
