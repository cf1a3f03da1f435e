"""``--otval-fix``: the changes that checks propose, shown as a diff and written where nothing can be hit by mistake.

A file is replaced as a whole by one of a new name in the same folder, which is opened from the task's folder down
without following links; it keeps its mode and, where that is allowed, its owner. What changed since it was read, is a
link, or lies behind one is left alone.
"""

from __future__ import annotations

import difflib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.registry import Change, Check, Repair
from pytest_otval.checks.repairs import ELSEWHERE_REPAIRS
from pytest_otval.core import Finding

MAX_DIFF_LINES = 200
"""Of one file, as shown."""
MAX_COMPARED_LINES = 20_000

READABLE, EXECUTABLE = 0o444, 0o111


class NotFixedError(Exception):
    """A change was not made; the text says why."""


@dataclass(frozen=True, slots=True)
class Fix:
    """A change of one file, or what kept it from being made."""

    path: str
    checks: tuple[str, ...]
    """Ids of the findings it does away with."""
    diff: str = ""
    trouble: str = ""
    """Why it was not made; empty where it was."""

    def as_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return {"path": self.path, "checks": list(self.checks), "diff": self.diff, "trouble": self.trouble}


def repairing(checks: Iterable[Check]) -> Mapping[str, Repair]:
    """Return the repairs there are, by id of the finding."""
    own = {check.id: check.repair for check in checks if check.repair is not None}
    return {**ELSEWHERE_REPAIRS, **own}


def proposed(
    context: CheckContext, findings: Iterable[Finding], repairs: Mapping[str, Repair]
) -> Iterator[tuple[str, Change]]:
    """Yield a change for each file at most, with the id of the finding it is for.

    Of two changes of a file the second is proposed again once the first is made and the task is read anew.
    """
    seen: set[str] = set()
    for finding in findings:
        if finding.check not in repairs or finding.allowed:
            continue
        for change in repairs[finding.check](context, finding):
            if change.path not in seen:
                seen.add(change.path)
                yield finding.check, change


@dataclass(frozen=True, slots=True)
class State:
    """A regular file as it was, or as it becomes."""

    content: bytes | None
    """None where it is longer than what is read."""
    mode: int


def make_change(root: Path, change: Change, limit: int, expected: bytes | None = None) -> tuple[State, State]:
    """Make a change in the task folder ``root``; return the file before and after.

    Files of more than ``limit`` bytes only change their mode. Raises NotFixedError, also for a file whose content is
    not what was ``expected``.
    """
    *above, name = change.path.split("/")
    try:
        with _opened(root, above) as folder:
            return _change(folder, name, change, limit, expected)
    except OSError as error:
        raise NotFixedError(error.strerror or str(error)) from None


def create_file(root: Path, path: str, content: bytes) -> None:
    """Write a new file in the task folder ``root``, whole or not at all. Raises NotFixedError, also if it is there."""
    *above, name = path.split("/")
    half = f".otval-fix-{secrets.token_hex(8)}"
    try:
        with _opened(root, above) as folder:
            try:
                _write_half(folder, half, content, 0o644)
                os.link(half, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            finally:
                with suppress(OSError):
                    os.unlink(half, dir_fd=folder)
    except OSError as error:
        raise NotFixedError(error.strerror or str(error)) from None


@contextmanager
def _opened(root: Path, above: Iterable[str]) -> Iterator[int]:
    """Open a folder below ``root``, from one to the next, none of them a link."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open(root, flags)
    try:
        for part in above:
            if part in ("", ".", ".."):
                raise NotFixedError("no plain path")
            inner = os.open(part, flags, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _change(folder: int, name: str, change: Change, limit: int, expected: bytes | None) -> tuple[State, State]:
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise NotFixedError("no regular file")
        content = _read(handle, limit)
        mode = stat.S_IMODE(facts.st_mode)
        before, after = State(content, mode), State(change.content or content, _mode(mode, change.executable))
        if change.content is None:
            if facts.st_nlink > 1:
                raise NotFixedError("the file has several names")
            os.fchmod(handle, after.mode)
            return before, after
        if content is None:
            raise NotFixedError("too large")
        if expected is not None and content != expected:
            raise NotFixedError("it was changed meanwhile")
    finally:
        os.close(handle)
    _replace(folder, name, change.content, after.mode, facts)
    return before, after


def _mode(mode: int, executable: bool | None) -> int:
    if executable is None:
        return mode
    # Whoever may read a script may then run it.
    return mode | ((mode & READABLE) >> 2) if executable else mode & ~EXECUTABLE


def _read(handle: int, limit: int) -> bytes | None:
    pieces, size = [], 0
    while piece := os.read(handle, 64 * 1024):
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            return None
    return b"".join(pieces)


def _replace(folder: int, name: str, content: bytes, mode: int, facts: os.stat_result) -> None:
    half = f".otval-fix-{secrets.token_hex(8)}"
    try:
        _write_half(folder, half, content, mode, facts)
        now = os.stat(name, dir_fd=folder, follow_symlinks=False)
        same = ("st_dev", "st_ino", "st_size", "st_mtime_ns")
        if any(getattr(now, fact) != getattr(facts, fact) for fact in same):
            raise NotFixedError("it was changed meanwhile")
        os.rename(half, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(half, dir_fd=folder)
        raise


def _write_half(folder: int, half: str, content: bytes, mode: int, owner: os.stat_result | None = None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(half, flags, 0o600, dir_fd=folder)
    try:
        if owner is not None:
            with suppress(PermissionError):
                os.fchown(handle, owner.st_uid, owner.st_gid)
        os.fchmod(handle, mode)
        view = memoryview(content)
        while view:
            view = view[os.write(handle, view) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def diff(path: str, before: State, after: State) -> str:
    """Return what changed in a file, as ``git diff`` writes it, with carriage returns written out."""
    lines = [f"--- a/{path}", f"+++ b/{path}"]
    if before.mode != after.mode:
        lines += [f"old mode {stat.S_IFREG | before.mode:o}", f"new mode {stat.S_IFREG | after.mode:o}"]
    if before.content is not None and after.content is not None and before.content != after.content:
        lines += _content_lines(before.content, after.content)
    shown = lines[:MAX_DIFF_LINES]
    if len(lines) > len(shown):
        shown.append(f"... and {len(lines) - len(shown)} more lines")
    return "\n".join(shown)


def _content_lines(before: bytes, after: bytes) -> list[str]:
    old, new = (_lines(content) for content in (before, after))
    if max(len(old), len(new)) > MAX_COMPARED_LINES:
        return [f"{len(old)} lines become {len(new)}"]
    return list(difflib.unified_diff(old, new, lineterm=""))[2:]


def _lines(content: bytes) -> list[str]:
    text = content.decode("utf-8", "backslashreplace").replace("\r", "\\r").replace("\ufeff", "\\ufeff")
    return text.removesuffix("\n").split("\n")
