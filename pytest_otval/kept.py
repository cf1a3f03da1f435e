"""Small values that are kept by key, in few files, for any process on any node.

``VERSION/GROUP.jsonl``, append-only. A line is key, checksum and value; processes append whole batches without a lock,
so on a network file system a line may be torn by another: its checksum tells, and it is as if it had not been written.
A reader notes where lines lie and parses those that are asked for.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_otval.core import NAME

BATCH = 64
"""Values that are written at once, and lost at most when a process is killed."""

MAX_FILE_BYTES = 256 * 1024**2
"""A file that has grown larger, by many changes of what it is about, is begun anew."""

MAX_AGE_DAYS = 30
"""What was kept under other versions stays as long after its last use."""

KEY_CHARS = 32
_SUM = 16


class Kept:
    """Values in plain JSON types; whatever is wrong with the folder, nothing is found in it and no more."""

    def __init__(self, folder: Path, version: str) -> None:
        """``version``: of what makes the values; those of others are not found, and go in time."""
        self._root = folder
        self._folder = folder / version
        self._files: dict[str, _File] = {}
        self._waiting: dict[str, dict[str, bytes]] = {}
        self._swept = False

    def get(self, group: str, key: str) -> Any:
        """Return the value that was put last, or None."""
        waiting = self._waiting.get(group, {}).get(key)
        if waiting is not None:
            return json.loads(waiting)
        if group not in self._files:
            self._files[group] = _File(self._path(group))
        return self._files[group].get(key.encode())

    def put(self, group: str, key: str, value: Any) -> None:
        """Keep a value under a key of KEY_CHARS hex digits. ``group`` is any text; its values share a file."""
        waiting = self._waiting.setdefault(group, {})
        waiting[key] = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
        if len(waiting) >= BATCH:
            self._write(group)

    def flush(self) -> None:
        """Write what waits."""
        for group in list(self._waiting):
            self._write(group)

    def close(self) -> None:
        """Write what waits and close files."""
        self.flush()
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _path(self, group: str) -> Path:
        name = group if NAME.fullmatch(group) else hashlib.sha256(os.fsencode(group)).hexdigest()
        return self._folder / f"{name}.jsonl"

    def _write(self, group: str) -> None:
        waiting = self._waiting.pop(group, {})
        path = self._path(group)
        with suppress(OSError):
            self._sweep()
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.stat().st_size > MAX_FILE_BYTES:
                path.unlink()
            lines = [b" ".join((key.encode(), _checksum(key.encode(), body), body)) for key, body in waiting.items()]
            # A line that was cut off takes no other with it.
            data = b"\n" + b"\n".join(lines) + b"\n"
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                os.write(handle, data)
            finally:
                os.close(handle)

    def _sweep(self) -> None:
        """Remove what other versions kept long ago."""
        if self._swept or not self._root.is_dir():
            return
        self._swept = True
        oldest = time.time() - MAX_AGE_DAYS * 24 * 3600
        for folder in self._root.iterdir():
            if folder != self._folder and max(path.stat().st_mtime for path in (folder, *folder.glob("*"))) < oldest:
                shutil.rmtree(folder, ignore_errors=True)


class _File:
    """Where the lines of one file lie, as far as it was read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[bytes, tuple[int, int]] = {}
        self._handle: int | None = None
        self._end = 0
        """Up to where lines were noted."""

    def get(self, key: bytes) -> Any:
        """Return the value of a line that is whole, else None."""
        with suppress(OSError, ValueError):
            if key not in self._places:
                self._go_on()
            if self._handle is not None and key in self._places:
                offset, length = self._places[key]
                return _value(key, os.pread(self._handle, length, offset))
        return None

    def _go_on(self) -> None:
        """Note lines that were written since, by this process or another."""
        if self._handle is None:
            self._handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            with suppress(OSError):
                os.utime(self._handle)  # in use, so it is not swept
        if os.fstat(self._handle).st_size <= self._end:
            return
        with open(self._handle, "rb", closefd=False) as file:
            file.seek(self._end)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                if len(line) > KEY_CHARS + _SUM + 2:
                    self._places[line[:KEY_CHARS]] = (self._end, len(line))
                self._end += len(line)

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _value(key: bytes, line: bytes) -> Any:
    line = line.rstrip(b"\n")
    body = line[KEY_CHARS + _SUM + 2 :]
    whole = line[: KEY_CHARS + _SUM + 2] == b"%s %s " % (key, _checksum(key, body))
    return json.loads(body) if whole else None


def _checksum(key: bytes, body: bytes) -> bytes:
    return hashlib.sha256(key + body).hexdigest()[:_SUM].encode()
