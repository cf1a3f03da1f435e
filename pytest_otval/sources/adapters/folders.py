"""Files of records that are folders: read without following a link, bounded, and as text in one spelling."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

from pytest_otval.sources.adapters.base import MAX_FILE_BYTES, MAX_TASK_BYTES, RefusalError
from pytest_otval.sources.files import File, Files
from pytest_otval.task.packed.unpack import MAX_ENTRIES, shown
from pytest_otval.task.reading import NotReadableError, read_regular

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def read_bytes(path: Path, what: str) -> bytes:
    """Return a file's bytes. Raises RefusalError where it is no regular file, or too large."""
    try:
        return read_regular(path, MAX_FILE_BYTES)
    except FileNotFoundError:
        raise RefusalError("unreadable", f"has no {what}") from None
    except (NotReadableError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise RefusalError("unreadable", f"{what} {why}") from None


def read_text(path: Path, what: str, *, keep_ends: bool = False) -> str:
    """Return a file's text, decoded by its byte order mark, with line feeds for line ends unless these are kept.

    Raises RefusalError.
    """
    data = read_bytes(path, what)
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        raise RefusalError("unreadable", f"{what} is no text in UTF-8 or UTF-16") from None
    return text if keep_ends else text.replace("\r\n", "\n")


def read_folder(folder: Path) -> Files:
    """Return all files below a folder, by their relative paths in order. Raises RefusalError for links and all else."""
    files: Files = {}
    left = MAX_TASK_BYTES
    for path in _below(folder, ""):
        place = folder / path
        content = read_bytes(place, shown(os.fsencode(path)))
        left -= len(content)
        if left < 0 or len(files) == MAX_ENTRIES:
            raise RefusalError("too-large", f"has more than {MAX_TASK_BYTES >> 20} MiB or {MAX_ENTRIES} files")
        files[path] = File(content, bool(place.lstat().st_mode & 0o100))
    return files


def _below(folder: Path, prefix: str) -> list[str]:
    found: list[str] = []
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        raise RefusalError("unreadable", f"{prefix or 'its folder'} cannot be listed: {error.strerror}") from None
    for entry in entries:
        path = prefix + entry.name
        if entry.is_dir(follow_symlinks=False):
            if path.count("/") > 60:
                raise RefusalError("unsafe-path", "has folders nested too deep")
            found += _below(folder / entry.name, f"{path}/")
        else:
            found.append(path)
    return found
