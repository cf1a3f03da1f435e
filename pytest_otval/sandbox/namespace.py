"""Files that containers wrote: read, measured and deleted whatever their owners and modes.

What the user can do as he is, is done here without following a link, on open folders, so that nothing can be swapped
meanwhile. Owners that exist only in the container's user namespace are met inside it: a well-known program runs there
with the container's mapping, after every process of the container is dead.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import sh

from pytest_otval.sandbox.base import WHITEOUT

_FIND = 'find "$1" -mindepth 1 -xdev -ignore_readdir_race -cnewer "$2" -printf "%y %P\\0"'
"""Writes what ``touched`` tells."""


class FilesOfContainers:
    """Reading, measuring and deleting what containers wrote, for one way of mapping uids."""

    def __init__(self, maps_uids: bool) -> None:
        # Root can do everything as it is; without a mapping all files are the user's own.
        inside = maps_uids and os.getuid() != 0
        self._prefix: Sequence[str] = ("unshare", "--map-root-user", "--map-auto", "--") if inside else ()
        # To look into a folder that is closed to its own owner, and leave it so, takes a root of some kind, too.
        alone = ("unshare", "--map-root-user", "--") if os.getuid() != 0 else ()
        self._looking: Sequence[str] = self._prefix or alone

    def make_readable(self, folder: Path) -> None:
        """Let the user read every folder and file below ``folder``; links are left alone."""
        if not _all_readable(folder):
            self._run("chmod", "-R", "-f", "u+rwX,a+rX" if self._prefix else "u+rwX", "--", folder)

    def size(self, folder: Path) -> int:
        """Bytes on disk below ``folder``; hard links count once."""
        found = _size(folder)
        if found is None:
            text = self._run("du", "-s", "-B1", "--", folder)
            return int(text.split()[0]) if text.strip() else 0
        return found

    def remove(self, folder: Path) -> None:
        """Delete ``folder``, whatever the owners and modes in it, or what stands in its place."""
        with suppress(OSError, RecursionError):
            # Of what is no folder rmtree would wait for the other end of a FIFO.
            if stat.S_ISDIR(folder.lstat().st_mode):
                shutil.rmtree(folder, ignore_errors=True)
            else:
                folder.unlink()
        if os.path.lexists(folder):
            self._run("sh", "-c", 'chmod -R -f u+rwX -- "$1"; rm -rf --one-file-system -- "$1"', "sh", folder)

    def names(self, folder: Path) -> list[str]:
        """Return the names in ``folder``, which need not exist."""
        try:
            return [path.name for path in folder.iterdir()]
        except FileNotFoundError:
            return []
        except PermissionError:
            argv = ("find", folder, "-mindepth", "1", "-maxdepth", "1", "-printf", "%f\\0")
            found = self._run(*argv, prefix=self._looking, _decode_errors="surrogateescape")
            return [name for name in found.split("\0") if name]

    def holds(self, top: Path, parts: Sequence[str]) -> bool:
        """Whether the folder at ``parts`` below ``top`` has anything in it, or cannot be looked into.

        Marks of fuse-overlayfs are nothing. False where one on the way is no folder; links are not followed.
        """
        folder = top
        try:
            for part in parts:
                folder = folder / part
                if not stat.S_ISDIR(folder.lstat().st_mode):
                    return False
            return not all(path.name.startswith(WHITEOUT) for path in folder.iterdir())
        except FileNotFoundError:
            return False
        except PermissionError:
            return True

    def copy(self, source: Path, target: Path) -> None:
        """Copy a file or folder with owners, modes, links and marks of removal. Raises OSError."""
        if os.path.lexists(source):
            try:
                self._run("cp", "-a", "--reflink=auto", "--", source, target, prefix=self._looking, _ok_code=0)
            except sh.ErrorReturnCode as error:
                words = error.stderr.decode(errors="replace").strip().splitlines()
                raise OSError(words[-1] if words else f"{source} cannot be copied") from None

    def touched(self, folder: Path, since: Path, target: Path, most: int) -> None:
        """See ``base.Sandbox``."""
        script = f'{{ {_FIND} 2>/dev/null || printf \'! \\0\'; }} | head -c "$3" >"$4"'
        self._run("sh", "-c", script, "sh", folder, since, str(most), target, prefix=self._looking)

    def _run(self, *argv: str | Path, prefix: Sequence[str] | None = None, **more: Any) -> str:
        words = [*(self._prefix if prefix is None else prefix), *map(str, argv)]
        options: dict[str, Any] = {"_tty_out": False, "_ok_code": range(256), **more}
        return str(sh.Command(words[0])(*words[1:], **options))


class _UnreadableError(Exception):
    pass


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise _UnreadableError


def _size(folder: Path) -> int | None:
    """Return bytes on disk, None where a folder cannot be read or lies too deep for us."""
    total, seen = 0, set()
    try:
        for _, _, files, handle in os.fwalk(folder, onerror=_refuse):
            total += os.fstat(handle).st_blocks * 512
            for name in files:
                try:
                    facts = os.lstat(name, dir_fd=handle)
                except FileNotFoundError:
                    continue
                if facts.st_nlink > 1:
                    if facts.st_ino in seen:
                        continue
                    seen.add(facts.st_ino)
                total += facts.st_blocks * 512
    except (_UnreadableError, OSError, RecursionError):
        return None
    return total


def _all_readable(folder: Path) -> bool:
    try:
        for _, folders, files, handle in os.fwalk(folder, onerror=_refuse):
            for name in (*folders, *files):
                mode = os.lstat(name, dir_fd=handle).st_mode
                if stat.S_ISREG(mode) and not os.access(name, os.R_OK, dir_fd=handle, follow_symlinks=False):
                    return False
    except (_UnreadableError, OSError, RecursionError):
        return False
    return True
