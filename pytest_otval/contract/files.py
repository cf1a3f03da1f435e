"""Which files the tasks of a contract had: kept in the workspace, to say later which of them changed.

``$OT_WORKSPACE/contracts/<digest>.files.gz`` has one JSON line for each task. It is a help and no part of the contract,
which fixes the same files by the digest of each task.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from pytest_otval.core import printable
from pytest_otval.images.locks import write_whole

Files = Mapping[str, str]
"""Of a task: type, exec bit and digest by path."""
Key = tuple[str, str]
"""Dataset and task."""

_SHOWN = 4


def keep_files(folder: Path, digest: str, files: Mapping[Key, Files]) -> None:
    """Write them down for the contract of this digest; where that is not possible, nothing but a help is lost."""
    lines = (json.dumps([*key, one], separators=(",", ":")) + "\n" for key, one in files.items())
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(_path(folder, digest), gzip.compress("".join(lines).encode(), compresslevel=6, mtime=0))


def known_files(folder: Path, digest: str, wanted: Iterable[Key]) -> dict[Key, Files]:
    """Return what is known of some tasks of the contract of this digest; nothing where that is not known here."""
    keys = set(wanted)
    return {key: files for key, files in _read(_path(folder, digest)) if key in keys} if keys else {}


def _path(folder: Path, digest: str) -> Path:
    return folder / f"{digest[:16]}.files.gz"


def _read(path: Path) -> Iterator[tuple[Key, Files]]:
    try:
        with gzip.open(path, "rt") as lines:
            for line in lines:
                dataset, task, files = json.loads(line)
                yield (dataset, task), files
    except (OSError, EOFError, ValueError, TypeError, zlib.error):
        return


def changed(before: Files | None, after: Files | None) -> str:
    """Say in a few words which files differ; empty where one side is not known."""
    if before is None or after is None:
        return ""
    words = [_word(path, before, after) for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    more = f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + more


def _word(path: str, before: Files, after: Files) -> str:
    shown = printable(path)
    if path not in before:
        return f"{shown} is new"
    if path not in after:
        return f"{shown} is gone"
    old, new = before[path].split(" "), after[path].split(" ")
    if old[0] == new[0] and old[2:] == new[2:]:
        return f"{shown} {'may' if new[1] else 'may not'} be executed now"
    return f"{shown} changed"
