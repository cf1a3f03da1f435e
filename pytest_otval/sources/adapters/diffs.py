"""Patches of a source: which files they change, and what stands in these files afterwards as far as it is shown."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchedFile, PatchSet

from pytest_otval.core import Conclusion
from pytest_otval.sources.adapters.base import RefusalError
from pytest_otval.sources.adapters.fields import check_text
from pytest_otval.task.packed.unpack import Rules

_NOTHING = "/dev/null"
_HEADERS = re.compile(r"(?:rename (?:from|to)|copy (?:from|to)) (.+)")
_CANNOT_QUOTE = re.compile(r'["\\]')


@dataclass(frozen=True, slots=True)
class Part:
    """What one hunk shows of a file as it is afterwards."""

    start: int
    """The number of its first line, from 1."""
    lines: tuple[str, ...]
    """With their ends."""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One file that a patch changes, adds or removes."""

    paths: tuple[str, ...]
    """Where it is and was, relative and with ``/``."""
    added: bool
    parts: tuple[Part, ...]


def read_patch(text: str, what: str) -> tuple[ChangedFile, ...]:
    """Return the files that a unified diff changes, which is at least one.

    Raises RefusalError for what is no whole patch, and for paths that ``git apply`` would not take: absolute ones,
    those that leave the folder or lie in .git, and quoted ones.
    """
    check_text(text, what, controls=True)
    if not text.strip():
        raise RefusalError("wrong-patch", f"{what} is empty")
    try:
        patch = PatchSet(io.StringIO(text, newline="\n"))
    except UnidiffParseError as error:
        why = " ".join(str(error).split())
        raise RefusalError("wrong-patch", f"{what} cannot be read as a patch: {why}") from None
    if not len(patch):
        raise RefusalError("wrong-patch", f"{what} changes no file")
    for file in patch:
        _require_mode(file, what)
    return tuple(_changed(file, what) for file in patch)


def _require_mode(file: PatchedFile, what: str) -> None:
    """Refuse git's header of a new or removed file without its mode, which git takes for one called dev/null."""
    header = "".join(file.patch_info or ())
    for is_so, mode in ((file.is_added_file, "new file mode"), (file.is_removed_file, "deleted file mode")):
        if is_so and header.startswith("diff --git ") and f"\n{mode} " not in header:
            raise RefusalError("wrong-patch", f"{what} has no line `{mode}` for {file.path[:80]!r}")


def paths_of(files: Sequence[ChangedFile]) -> tuple[str, ...]:
    """Return all paths of a patch, each once."""
    return tuple(dict.fromkeys(path for file in files for path in file.paths))


def _changed(file: PatchedFile, what: str) -> ChangedFile:
    paths = tuple(dict.fromkeys(_plain(path, what) for path in _named(file)))
    return ChangedFile(paths, file.is_added_file, tuple(map(_part, file)))


def _named(file: PatchedFile) -> Iterator[str]:
    """Yield every path that the headers of a file give."""
    for path in (file.source_file, file.target_file):
        if path != _NOTHING:
            yield re.sub(r"^[ab]/", "", path.partition("\t")[0])
    for line in file.patch_info or ():
        if found := _HEADERS.fullmatch(line.rstrip("\n")):
            yield found[1]


def _plain(path: str, what: str) -> str:
    raw = path.encode("utf-8", "surrogateescape")
    if not path.isprintable() or _CANNOT_QUOTE.search(path):
        raise RefusalError("unsafe-path", f"{what} changes {path[:80]!r}, a name that cannot be used as it is")
    try:
        plain = Rules().checked(raw, raw)
    except Conclusion as conclusion:
        raise RefusalError("unsafe-path", f"{what}: {conclusion.headline}") from None
    if plain != raw or any(part.lower() == ".git" for part in path.split("/")):
        raise RefusalError("unsafe-path", f"{what} changes {path[:80]!r}, which git would not")
    return path


def _part(hunk: Hunk) -> Part:
    return Part(hunk.target_start, tuple(line.value for line in hunk if line.is_added or line.is_context))
