"""Digests of a task folder: ours, which covers everything that can change a verdict, and Harbor's, for export."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from pathspec import GitIgnoreSpec, PathSpec

from pytest_otval.task.reading import OPEN_FLAGS, NotReadableError, open_regular, read_regular, target_within

HARBOR_FILES = ("task.toml", "instruction.md", "README.md", "trajectory.json")
HARBOR_FOLDERS = ("environment", "tests", "solution", "steps")
HARBOR_DEFAULT_IGNORES = ("__pycache__/", "*.pyc", ".DS_Store", "*.swp", "*.swo", "*~")
HARBOR_IGNORE_FILE = ".harborignore"
MAX_IGNORE_BYTES = 1024 * 1024
_ONE_READ = 256 * 1024


class DigestError(Exception):
    """Harbor has no digest of this folder, or one that reads files outside it; the text says why."""


def task_digest(folder: Path, without: str = "") -> str:
    """Return ``sha256:...`` over every entry below ``folder``: path, type, exec bit, and content or link target.

    Owners, times and other mode bits are not covered: they do not survive a checkout. What is no regular file is
    covered by its type alone, and an unreadable file by being so; nothing special is opened. ``without`` is a path
    below ``folder`` that is left out.
    """
    left_out = os.fsencode(without)
    return _digest_of_entries(entry for entry in sorted(_entries(folder)) if entry[0] != left_out)


def task_content(folder: Path) -> tuple[str, dict[str, str]]:
    """Return a task's digest, and what it covers by path: type, exec bit and digest as one text, without folders.

    Paths are shown with escapes where they are no UTF-8.
    """
    entries = sorted(_entries(folder))
    files = {
        path.decode(errors="backslashreplace"): b" ".join(facts).decode(errors="backslashreplace")
        for path, facts in entries
        if facts != _FOLDER
    }
    return _digest_of_entries(entries), files


def digest_of_files(files: Iterable[tuple[str, bool, bytes]]) -> str:
    """Return the digest of a task that is not written yet, from path, exec bit and content of each of its files."""
    entries: dict[bytes, Facts] = {}
    for path, executable, content in files:
        raw = os.fsencode(path)
        entries[raw] = b"file", b"x" if executable else b"", hashlib.sha256(content).hexdigest().encode()
        entries.update((raw[:place], _FOLDER) for place, sign in enumerate(raw) if sign == ord("/"))
    return _digest_of_entries(sorted(entries.items()))


def _digest_of_entries(entries: Iterable[tuple[bytes, Facts]]) -> str:
    joined = b"".join(b"\0".join((path, *facts, b"\n")) for path, facts in entries)
    return f"sha256:{hashlib.sha256(joined).hexdigest()}"


Facts = tuple[bytes, bytes, bytes]
"""Type, exec bit, and digest or link target of an entry."""

_UNREADABLE: Facts = (b"unreadable", b"", b"")
_FOLDER: Facts = (str(stat.S_IFDIR).encode(), b"", b"")


def _entries(folder: Path) -> Iterator[tuple[bytes, Facts]]:
    """Yield each entry by its path below a folder; in bytes and by few calls, for every item of a run waits for it."""
    root = os.fsencode(folder) + b"/"
    pending = [b""]
    while pending:
        below = pending.pop()
        try:
            found = list(os.scandir(root + below))
        except OSError:
            if below:
                yield below, _UNREADABLE
            continue
        for entry in found:
            path = below + entry.name
            if entry.is_file(follow_symlinks=False):
                yield path, _facts_of_file(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                yield path, _FOLDER
                pending.append(path + b"/")
            else:
                yield path, _facts(entry)


def _facts(entry: os.DirEntry[bytes]) -> Facts:
    try:
        if entry.is_symlink():
            return b"link", b"", os.readlink(entry.path)  # noqa: PTH115
        return str(stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode)).encode(), b"", b""
    except OSError:
        return _UNREADABLE


def _facts_of_file(path: bytes) -> Facts:
    try:
        descriptor = os.open(path, OPEN_FLAGS)
    except OSError:
        return _UNREADABLE
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            return _UNREADABLE
        content = _digest_of(descriptor, facts.st_size)
    except OSError:
        return _UNREADABLE
    finally:
        os.close(descriptor)
    return b"file", b"x" if facts.st_mode & stat.S_IXUSR else b"", content.encode()


def _digest_of(descriptor: int, size: int) -> str:
    """Return the sha256 of the first ``size`` bytes of an open file: one that grows meanwhile has no end."""
    first = os.read(descriptor, min(size, _ONE_READ)) if size else b""
    total, left = hashlib.sha256(first), size - len(first)
    while left > 0 and (piece := os.read(descriptor, min(left, _ONE_READ))):
        total.update(piece)
        left -= len(piece)
    return total.hexdigest()


def _content_digest(path: Path) -> str:
    with os.fdopen(open_regular(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def harbor_digest(folder: Path) -> str:
    """Return ``sha256:...`` as Harbor 0.26 computes a task's content digest (``harbor publish``, dataset.toml).

    It covers paths and contents of the files that Harbor would publish, no modes. Raises DigestError.
    """
    root = folder.resolve()
    total = hashlib.sha256()
    for path in _published(root):
        target = target_within(root / path, root)
        if target is None:
            raise DigestError(f"{path} is a link that leaves the task: replace it by the file")
        try:
            total.update(f"{path}\0{_content_digest(target)}\n".encode())
        except (OSError, NotReadableError, UnicodeEncodeError) as error:
            raise DigestError(f"{path} cannot be read: {error}") from None
    return f"sha256:{total.hexdigest()}"


def _published(root: Path) -> list[PurePosixPath]:
    ignores = _HarborIgnores(root)
    found = [PurePosixPath(name) for name in HARBOR_FILES if os.path.lexists(root / name)]
    for name in HARBOR_FOLDERS:
        if (root / name).is_dir():
            found.extend(_included(root, PurePosixPath(name), ignores))
        elif os.path.lexists(root / name):
            raise DigestError(f"{name} is no folder")
    if os.path.lexists(root / ".gitignore"):
        spec = PathSpec.from_lines("gitignore", _lines(root, PurePosixPath(".gitignore")))
    else:
        spec = PathSpec.from_lines("gitignore", HARBOR_DEFAULT_IGNORES)
    return sorted((path for path in found if not spec.match_file(str(path))), key=str)


def _included(root: Path, folder: PurePosixPath, ignores: _HarborIgnores) -> Iterator[PurePosixPath]:
    """Yield the files below ``folder`` that are not ignored, also links to files, without entering linked folders."""
    for whole in (root / folder).iterdir():
        path = folder / whole.name
        if ignores.exclude(path):
            continue
        if whole.is_dir() and not whole.is_symlink():
            yield from _included(root, path, ignores)
        elif whole.is_file():
            yield path


class _HarborIgnores:
    """The .harborignore files of tests/ and solution/, of the task and of its steps: the last matching rule wins."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._specs: dict[PurePosixPath, GitIgnoreSpec] = {}

    def exclude(self, path: PurePosixPath) -> bool:
        """Whether an entry is left out, by its own path or by that of what it links to."""
        if self._matches(path):
            return True
        target = target_within(self._root / path, self._root)
        if target is None or target == self._root / path:
            return False
        return self._matches(PurePosixPath(target.relative_to(self._root).as_posix()))

    def _matches(self, path: PurePosixPath) -> bool:
        if path.name == HARBOR_IGNORE_FILE:
            return True
        scope = _scope(path)
        if scope is None:
            return False
        inside = path.relative_to(scope).parts
        return any(self._rule(scope, scope.joinpath(*inside[:depth])) for depth in range(1, len(inside) + 1))

    def _rule(self, scope: PurePosixPath, path: PurePosixPath) -> bool:
        """Whether the rules of the folders from ``scope`` down to ``path`` leave ``path`` itself out."""
        mark = "/" if (self._root / path).is_dir() else ""
        excluded = False
        for folder in reversed([above for above in path.parents if above.is_relative_to(scope)]):
            verdict = self._spec(folder).check_file(f"{path.relative_to(folder)}{mark}").include
            excluded = excluded if verdict is None else verdict
        return excluded

    def _spec(self, folder: PurePosixPath) -> GitIgnoreSpec:
        if folder not in self._specs:
            file = folder / HARBOR_IGNORE_FILE
            lines = _lines(self._root, file) if os.path.lexists(self._root / file) else []
            self._specs[folder] = GitIgnoreSpec.from_lines(lines)
        return self._specs[folder]


def _scope(path: PurePosixPath) -> PurePosixPath | None:
    """Return the tests/ or solution/ folder that ``path`` is in, itself included."""
    parts = path.parts
    depth = 3 if parts[0] == "steps" else 1
    named = len(parts) >= depth and parts[depth - 1] in ("tests", "solution")
    return PurePosixPath(*parts[:depth]) if named else None


def _lines(root: Path, file: PurePosixPath) -> list[str]:
    target = target_within(root / file, root)
    if target is None:
        raise DigestError(f"{file} is a link that leaves the task")
    try:
        return read_regular(target, MAX_IGNORE_BYTES).decode().splitlines()
    except (OSError, NotReadableError, UnicodeDecodeError) as error:
        raise DigestError(f"{file} cannot be read: {error}") from None
