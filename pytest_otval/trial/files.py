"""Files on their way into and out of a trial's containers. What comes out is hostile until it went through here."""

from __future__ import annotations

import errno
import os
import tarfile
from collections.abc import Callable, Collection
from itertools import dropwhile, islice
from pathlib import Path, PurePosixPath

from pytest_otval.task.reading import NotReadableError, open_regular

MAX_EVIDENCE_FILES = 50
MAX_EVIDENCE_BYTES = 1024 * 1024
"""Of each file."""

RootOf = Callable[[PurePosixPath], PurePosixPath | None]
"""Returns what an absolute path has to stay below; None for a path that has no business in an archive."""


def log_folder(path: Path) -> Path:
    """Make a folder that any user of a container may write into."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o777)
    return path


def keep_evidence(source: Path, target: Path) -> None:
    """Copy the regular files at the top of a dead container's log folder, each up to MAX_EVIDENCE_BYTES.

    A log of ours that has the name already stays.
    """
    for path in sorted(source.iterdir())[:MAX_EVIDENCE_FILES]:
        try:
            with os.fdopen(open_regular(path), "rb") as file:
                data = file.read(MAX_EVIDENCE_BYTES)
        except (OSError, NotReadableError):
            continue
        _write_new(target / path.name, data)


def keep_artifacts(archive: Path, target: Path) -> None:
    """Copy the first regular files of a sanitised archive below ``target``, each up to MAX_EVIDENCE_BYTES."""
    with tarfile.open(archive, "r:") as source:
        members = (member for member in source if member.isreg())
        for member in islice(members, MAX_EVIDENCE_FILES):
            content = source.extractfile(member)
            assert content is not None
            try:
                # Of two entries of one path, or a file and a folder, the first is kept.
                _write_new(target / member.name, content.read(MAX_EVIDENCE_BYTES))
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise


def _write_new(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not os.path.lexists(path):
        path.write_bytes(data)


def below_roots(roots: Collection[str]) -> RootOf:
    """Return the function that finds which of ``roots`` (absolute paths) a path lies below."""
    return lambda path: next((PurePosixPath(root) for root in roots if path.is_relative_to(root)), None)


def sanitise(archive: Path, target: Path, root_of: RootOf, links_out: bool = False) -> None:
    """Rewrite a tar that a container streamed out, keeping only what may enter another container.

    Members have a root: files, folders, links that stay below their root (all, with ``links_out``), and hard links to
    files that were kept; of two at one path the first, and nothing below a link or file; no set-id bits, devices or
    FIFOs. An empty stream is an archive without members. Raises tarfile.TarError where the stream is no tar.
    """
    files: set[PurePosixPath] = set()
    leaves: set[PurePosixPath] = set()
    with tarfile.open(target, "w") as clean:
        if archive.stat().st_size == 0:
            return
        with tarfile.open(archive, "r:") as source:
            for member in source:
                path = PurePosixPath("/", member.name)
                root = root_of(path)
                if root is None or ".." in path.parts or not leaves.isdisjoint((path, *path.parents)):
                    continue
                if not (links_out and member.issym()) and not _harmless(member, path, root, files):
                    continue
                if not member.isdir():
                    leaves.add(path)
                if not (member.isdir() or member.issym()):
                    files.add(path)
                clean.addfile(_plain(member, path), source.extractfile(member) if member.isreg() else None)


def _harmless(
    member: tarfile.TarInfo, path: PurePosixPath, root: PurePosixPath, files: Collection[PurePosixPath]
) -> bool:
    if member.issym():
        # Behind a name ".." may leave another folder than the words say: that name may itself be a link.
        names = dropwhile(lambda part: part == "..", PurePosixPath(member.linkname).parts)
        goal = os.path.normpath(path.parent / member.linkname)
        return member.linkname != "" and ".." not in names and PurePosixPath(goal).is_relative_to(root)
    if member.islnk():
        return PurePosixPath("/", member.linkname) in files
    return member.isreg() or member.isdir()


def _plain(member: tarfile.TarInfo, path: PurePosixPath) -> tarfile.TarInfo:
    """Return a member's header with nothing in it that was not looked at."""
    plain = tarfile.TarInfo(str(path)[1:])
    plain.type = tarfile.REGTYPE if member.isreg() else member.type
    plain.linkname = str(PurePosixPath("/", member.linkname))[1:] if member.islnk() else member.linkname
    plain.size = member.size if member.isreg() else 0
    plain.mode = member.mode & 0o777
    plain.mtime, plain.uid, plain.gid = member.mtime, member.uid, member.gid
    return plain
