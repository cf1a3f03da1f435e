"""The cache of runtimes: what may be used, what is put into it, and what nobody needs any more."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_otval.images.bases import file_digest
from pytest_otval.images.locks import half_name, locked
from pytest_otval.runtimes.record import (
    CHECKSUM,
    Reference,
    Runtime,
    read_record,
    record_path,
    records,
    short,
    squashfs_path,
    write_record,
)


class UnusableError(Exception):
    """A runtime that a task names cannot be used; the text says why, in one line."""


class Runtimes:
    """The runtimes of a cache folder, which need not exist."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self._verified: dict[tuple[int, ...], str] = {}
        """Checksums of files as they were when they were read; a file that was touched since is read again."""

    def find(self, reference: Reference) -> Runtime:
        """Return the runtime that a task names, once its checksum was found right. Raises UnusableError."""
        runtime = read_record(self.cache, reference.checksum)
        if runtime is None or runtime.id != reference.id:
            raise UnusableError(self._why_missing(reference))
        if runtime.path != reference.path:
            raise UnusableError(f"{runtime.id} lies at {runtime.path}, and the task expects it at {reference.path}")
        fault = self.fault(runtime)
        if fault:
            raise UnusableError(f"{runtime.id} in {self.cache}: {fault}")
        return runtime

    def newest(self, runtime_id: str) -> Runtime | None:
        """Return the newest right runtime of an id."""
        return next((one for one in records(self.cache) if one.id == runtime_id and not self.fault(one)), None)

    def file(self, runtime: Runtime) -> Path:
        """Return a runtime's squashfs."""
        return squashfs_path(self.cache, runtime.checksum)

    def fault(self, runtime: Runtime) -> str:
        """Return what is wrong with a runtime's squashfs, in one line; empty where it is what its manifest says."""
        path = self.file(runtime)
        try:
            facts = path.stat()
            if facts.st_size != runtime.bytes:
                return f"the squashfs has {facts.st_size} bytes in place of {runtime.bytes}"
            seen = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
            if self._verified.get(seen) is None:
                self._verified[seen] = file_digest(path)
            if self._verified[seen] != runtime.checksum:
                return "the squashfs does not match its checksum"
        except FileNotFoundError:
            return "the squashfs is missing"
        except OSError as error:
            return f"the squashfs cannot be read: {error.strerror}"
        return ""

    def _why_missing(self, reference: Reference) -> str:
        others = [short(one.checksum) for one in records(self.cache) if one.id == reference.id]
        named = short(reference.checksum)
        if others:
            return f"{self.cache} has {reference.id} with checksum {', '.join(others)}, and the task names {named}"
        return f"{self.cache} has no complete {reference.id} ({named})"

    @contextmanager
    def making(self, runtime_id: str) -> Iterator[None]:
        """Let one process make the runtimes of an id at a time. Raises Conclusion as ``images.locks.locked``."""
        self.cache.mkdir(parents=True, exist_ok=True)
        with locked(self.cache / f"{runtime_id}.lock"):
            yield

    def half(self, runtime_id: str) -> Path:
        """Return the hidden name under which this process makes a squashfs."""
        return half_name(self.cache / f"{runtime_id}.sqfs")

    def part(self, checksum: str) -> Path:
        """Return the hidden name under which a squashfs comes from elsewhere; what is there is gone on with."""
        return self.cache / f".{checksum}.part"

    def parts(self, before: float) -> list[Path]:
        """Return what is left of downloads that nobody went on with since ``before`` (seconds since 1970)."""
        return sorted(path for path in self.cache.glob(".*.part") if _written([path]) < before)

    def publish(self, half: Path, runtime: Runtime) -> None:
        """Put a finished squashfs in its place, then its manifest. Raises OSError."""
        with half.open("rb") as file:
            os.fsync(file.fileno())
        file_path = self.file(runtime)
        half.replace(file_path)
        # Nobody but its owner's slip could write to it; a container never can. Not before: a part is gone on with.
        file_path.chmod(0o444)
        write_record(self.cache, runtime)

    def remove(self, checksum: str) -> None:
        """Remove a runtime; without its manifest it is none, so nobody takes one that is half removed."""
        record_path(self.cache, checksum).unlink(missing_ok=True)
        squashfs_path(self.cache, checksum).unlink(missing_ok=True)

    def checksums(self) -> list[str]:
        """Return the checksums of which there are files, whole or not."""
        if not self.cache.is_dir():
            return []
        paths = [path for path in self.cache.iterdir() if path.suffix in (".json", ".sqfs")]
        return sorted({path.stem for path in paths if CHECKSUM.fullmatch(path.stem)})

    def is_young(self, checksum: str, before: float) -> bool:
        """Whether a file of a runtime was written since ``before`` (seconds since 1970)."""
        return _written(self._files(checksum)) >= before

    def garbage(self, named: Set[str], before: float) -> list[str]:
        """Return the checksums of files that are not ``named``, and written ``before`` a time (seconds since 1970)."""
        unnamed = [checksum for checksum in self.checksums() if checksum not in named]
        return [checksum for checksum in unnamed if not self.is_young(checksum, before)]

    def _files(self, checksum: str) -> tuple[Path, Path]:
        return record_path(self.cache, checksum), squashfs_path(self.cache, checksum)

    def size(self, checksum: str) -> int:
        """Return the bytes that a runtime's files have."""
        total = 0
        for path in self._files(checksum):
            with suppress(OSError):
                total += path.stat().st_size
        return total


def _written(paths: Iterable[Path]) -> float:
    newest = 0.0
    for path in paths:
        with suppress(OSError):
            newest = max(newest, path.stat().st_mtime)
    return newest
