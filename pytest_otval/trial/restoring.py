"""What of an agent's layer goes before a shared verifier runs, and what is carried over all the same.

At ``masked`` the folders of the system are the image's again; at ``pristine`` all is, but what the task lets the agent
change. The writable layer holds what differs from the image: what is put back is taken out of it. What is kept below a
folder that is put back is carried over as an archive, by programs of ours in containers of their own.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path, PurePosixPath

from pytest_otval.core import RESTORING, Conclusion, Isolation
from pytest_otval.images.lower import Lower, path_parts
from pytest_otval.images.model import Files
from pytest_otval.sandbox.base import TOOLBOX, WHITEOUT
from pytest_otval.task.keep import PACKAGE
from pytest_otval.task.packed.unpack import DamagedError
from pytest_otval.trial.files import sanitise
from pytest_otval.trial.packages import patterns_of

SYSTEM = frozenset(("bin", "etc", "lib", "lib32", "lib64", "libx32", "opt", "sbin", "usr"))
"""Folders at the top of an image that ``masked`` puts back."""
_OURS = frozenset(("logs", "tests"))
"""Made anew by the hand-over: nothing of the agent's is in them but its artifacts."""

_COLLECT = (
    'cd /; for words; do shift; eval "for path in $words; do'
    ' test -e \\"\\$path\\" || test -L \\"\\$path\\" || continue; set -- \\"\\$@\\" \\"\\$path\\"; done"; done;'
    f' test $# = 0 || exec {TOOLBOX}/busybox tar -c -- "$@"'
)
_REMOVE = f'cd /; for words; do eval "{TOOLBOX}/busybox rm -rf -- $words"; done'
_WORD_SIGNS = 64 * 1024
"""Of one argument of a script: the kernel takes twice as much."""
_MAX_SIGNS = 1024 * 1024
"""Of all of them: the kernel takes twice as much, or less where a stack is small."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_@%+=:,./*?\[\]-]")


@dataclass(frozen=True, slots=True)
class Restoring:
    """What one verifier's layer loses and keeps."""

    stays: frozenset[str] | None
    """Names at the top that alone stay as the agent left them; None: all do but those of the system."""
    carried: tuple[str, ...]
    """Absolute patterns (``glob``) of what is carried over."""

    def restores(self, name: str) -> bool:
        """Whether the image's own comes back for what a layer has under a name at its top."""
        plain = name.removeprefix(WHITEOUT)
        return plain in SYSTEM if self.stays is None else plain not in self.stays

    @property
    def collecting(self) -> list[str]:
        """The script that streams out what is carried over, and its arguments. Raises Conclusion ``bad-task``."""
        return [_COLLECT, *self._words()]

    @property
    def removing(self) -> list[str]:
        """The script that makes room for it in the image's own folders, and its arguments. Raises as ``collecting``."""
        return [_REMOVE, *self._words()]

    def _words(self) -> list[str]:
        """Return the patterns as a shell reads them, some in each."""
        found = [""]
        for pattern in self.carried:
            word = "." + _UNSAFE.sub(r"\\\g<0>", pattern) + " "
            if len(found[-1]) + len(word) > _WORD_SIGNS:
                found.append("")
            found[-1] += word
        if sum(map(len, found)) > _MAX_SIGNS:
            raise Conclusion(
                "bad-task", "[metadata.otval] keep: names too much: write folders in place of what is in them"
            )
        return found

    def clean(self, raw: Path, target: Path) -> None:
        """Rewrite the stream of ``collecting``. Raises Conclusion ``tampered``."""
        try:
            sanitise(raw, target, self._root_of, links_out=True)
        except tarfile.TarError as error:
            raise Conclusion("tampered", f"what is kept is no archive: {error}") from None

    def _root_of(self, path: PurePosixPath) -> PurePosixPath | None:
        for pattern in self.carried:
            wanted = PurePosixPath(pattern).parts
            if len(path.parts) >= len(wanted) and all(map(fnmatchcase, path.parts, wanted)):
                return PurePosixPath(*path.parts[: len(wanted)])
        return None


def restoring_of(level: Isolation, files: Files, allowed: Iterable[str], keep: Sequence[str]) -> Restoring | None:
    """Return what a level does to an image's layer; None at ``none`` and ``fresh``.

    ``keep`` is the task's list, ``allowed`` the absolute paths that are the agent's without it. Raises Conclusion
    ``no-start`` for an image that cannot be read.
    """
    if level not in RESTORING:
        return None
    packages = [entry.removeprefix(PACKAGE) for entry in keep if entry.startswith(PACKAGE)]
    try:
        paths = _resolved(files, filter(_is_below_root, allowed))
        patterns = [pattern for name in packages for pattern in patterns_of(name, files)]
    except (OSError, DamagedError) as error:
        raise Conclusion("no-start", f"the image cannot be read: {error}") from None
    paths |= {PurePosixPath(entry) for entry in keep if not entry.startswith(PACKAGE)}
    tops = frozenset(path.parts[1] for path in paths if len(path.parts) == 2)
    stays = None if level == "masked" else tops | _OURS
    restoring = Restoring(stays, ())
    below = {path for path in paths if restoring.restores(path.parts[1]) and paths.isdisjoint(path.parents)}
    return replace(restoring, carried=(*(escape(str(path)) for path in sorted(below)), *patterns))


def _is_below_root(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return len(parts) > 1 and parts[0] == "/" and ".." not in parts


def _resolved(files: Files, paths: Iterable[str]) -> set[PurePosixPath]:
    """Return where paths lead to in an image, whose links are not the agent's."""
    with Lower(files) as lower:
        return {_followed(lower, path_parts(path)) for path in paths}


def _followed(lower: Lower, parts: Sequence[str]) -> PurePosixPath:
    for count in range(len(parts), 0, -1):
        found = lower.follow(parts[:count])
        if found is not None:
            return PurePosixPath("/", *found[0], *parts[count:])
    return PurePosixPath("/", *parts)
