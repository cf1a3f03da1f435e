"""Findings of tasks that did not change: kept by content digest, settings that matter, and version of the checks.

``VERSION/DATASET.jsonl``, append-only. A line is key, checksum and findings; processes on one or several nodes append
whole batches without a lock, so on a network file system a line may be torn by another: its checksum tells, and it is
as if it had not been written. A reader notes where lines lie and parses those that are asked for.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_otval.checks.allow import DatasetAllows
from pytest_otval.core import NAME, Finding

BATCH = 64
"""Results that are written at once, and lost at most when a process is killed."""

MAX_FILE_BYTES = 256 * 1024**2
"""A file that has grown larger, by many changes of its tasks, is begun anew."""

MAX_AGE_DAYS = 30
"""What was found by other versions of the checks is kept as long after its last use."""

_KEY, _SUM = 32, 16


@dataclass(frozen=True, slots=True)
class Subject:
    """All that findings depend on, but for the checks."""

    dataset: str
    task: str
    digest: str
    oracle: str
    allows: DatasetAllows

    @property
    def key(self) -> str:
        """Return what stands for it in the cache."""
        facts = [self.dataset, self.task, self.digest, self.oracle]
        for entry in self.allows.allow:
            if entry.covers(self.task):
                facts += [entry.check, entry.reason, str(entry), str(entry.names_one)]
        if self.allows.harbor_lint:
            facts.append(json.dumps(self.allows.harbor_lint, sort_keys=True, default=str))
        return hashlib.sha256("\0".join(facts).encode("utf-8", "surrogateescape")).hexdigest()[:_KEY]


class FindingsCache:
    """Findings by subject; whatever is wrong with the folder, nothing is found in it and no more."""

    def __init__(self, folder: Path, version: str) -> None:
        self._root = folder
        self._folder = folder / version
        self._files: dict[str, _File] = {}
        self._waiting: dict[str, list[bytes]] = {}
        self._swept = False
        self._latest: tuple[str, tuple[Finding, ...]] | None = None

    def get(self, subject: Subject) -> tuple[Finding, ...] | None:
        """Return what was found before, or None."""
        key = subject.key
        if self._latest is not None and self._latest[0] == key:
            return self._latest[1]
        if subject.dataset not in self._files:
            self._files[subject.dataset] = _File(self._path(subject.dataset))
        values = self._files[subject.dataset].get(key.encode())
        try:
            return None if values is None else tuple(map(Finding.from_dict, values))
        except (TypeError, ValueError, KeyError, AttributeError):
            return None

    def put(self, subject: Subject, findings: Sequence[Finding]) -> None:
        """Keep findings."""
        self._latest = subject.key, tuple(findings)
        body = json.dumps([found.as_dict() for found in findings], ensure_ascii=True, separators=(",", ":")).encode()
        key = subject.key.encode()
        waiting = self._waiting.setdefault(subject.dataset, [])
        waiting.append(b" ".join((key, _checksum(key, body), body)))
        if len(waiting) >= BATCH:
            self._write(subject.dataset)

    def flush(self) -> None:
        """Write what waits."""
        for dataset in list(self._waiting):
            self._write(dataset)

    def close(self) -> None:
        """Write what waits and close files."""
        self.flush()
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _path(self, dataset: str) -> Path:
        name = dataset if NAME.fullmatch(dataset) else hashlib.sha256(os.fsencode(dataset)).hexdigest()
        return self._folder / f"{name}.jsonl"

    def _write(self, dataset: str) -> None:
        lines = self._waiting.pop(dataset, [])
        path = self._path(dataset)
        with suppress(OSError):
            self._sweep()
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.stat().st_size > MAX_FILE_BYTES:
                path.unlink()
            # A line that was cut off takes no other with it.
            data = b"\n" + b"\n".join(lines) + b"\n"
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                os.write(handle, data)
            finally:
                os.close(handle)

    def _sweep(self) -> None:
        """Remove what other versions of the checks found long ago."""
        if self._swept or not self._root.is_dir():
            return
        self._swept = True
        oldest = time.time() - MAX_AGE_DAYS * 24 * 3600
        for folder in self._root.iterdir():
            if folder != self._folder and max(path.stat().st_mtime for path in (folder, *folder.glob("*"))) < oldest:
                shutil.rmtree(folder, ignore_errors=True)


class _File:
    """Where the lines of one file lie, as they were when it was first asked."""

    def __init__(self, path: Path) -> None:
        self._places: dict[bytes, tuple[int, int]] = {}
        self._handle: int | None = None
        with suppress(OSError):
            self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            os.utime(self._handle)  # in use, so it is not swept
            self._index(path)

    def _index(self, path: Path) -> None:
        offset = 0
        with path.open("rb") as file:
            for line in file:
                if len(line) > _KEY + _SUM + 2:
                    self._places[line[:_KEY]] = (offset, len(line))
                offset += len(line)

    def get(self, key: bytes) -> Any:
        """Return the values of a line that is whole, else None."""
        if self._handle is None or key not in self._places:
            return None
        offset, length = self._places[key]
        try:
            line = os.pread(self._handle, length, offset).rstrip(b"\n")
            body = line[_KEY + _SUM + 2 :]
            whole = line[: _KEY + _SUM + 2] == b"%s %s " % (key, _checksum(key, body))
            return json.loads(body) if whole else None
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _checksum(key: bytes, body: bytes) -> bytes:
    return hashlib.sha256(key + body).hexdigest()[:_SUM].encode()
