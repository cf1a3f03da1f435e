"""What a process opens, lists, writes and starts while it looks at a folder, by its own audit events."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAMS = ("bash", "shellcheck", "hadolint")
READ_ALWAYS = tuple({os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, Path(__file__).parents[2])})
"""Where modules come from."""


class Watch:
    """An audit hook, which cannot be taken away again: it only looks while a task is checked."""

    def __init__(self) -> None:
        self.root = ""
        self.seen: list[str] = []
        sys.addaudithook(self._hook)

    @contextmanager
    def over(self, root: Path) -> Iterator[None]:
        self.seen = []
        self.root = os.path.realpath(root)
        try:
            yield
        finally:
            self.root = ""

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.root:
            return
        if event == "open":
            path, _, flags = args
            if isinstance(path, int):
                return
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) and path != os.devnull:
                self.seen.append(f"writes {path!r}")
            elif not self._may_be_read(os.fsdecode(path), bool(flags & os.O_NOFOLLOW)):
                self.seen.append(f"opens {path!r}")
        elif event in ("os.scandir", "os.listdir"):
            path = os.fsdecode(args[0]) if args and not isinstance(args[0], int | type(None)) else "."
            if not self._may_be_read(path, False):
                self.seen.append(f"lists {path!r}")
        elif event == "subprocess.Popen":
            if os.path.basename(os.fsdecode(args[0])) not in PROGRAMS:
                self.seen.append(f"starts {args[0]!r}")
        elif event == "os.truncate" and isinstance(args[0], int):
            return  # of a file that is open: opening it to write would have been seen
        elif event.split(".")[0] in ("socket", "urllib", "shutil", "ctypes", "ftplib") or event in (
            "os.remove",
            "os.rename",
            "os.rmdir",
            "os.mkdir",
            "os.chmod",
            "os.chown",
            "os.link",
            "os.symlink",
            "os.truncate",
            "os.system",
            "os.exec",
            "os.posix_spawn",
            "os.fork",
        ):
            self.seen.append(f"{event}{args!r}")

    def _may_be_read(self, path: str, is_not_followed: bool) -> bool:
        # A link that is not followed is not read either: opening it fails.
        real = os.path.realpath(os.path.dirname(path)) if is_not_followed else os.path.realpath(path)
        return real == os.devnull or any(
            real == place or real.startswith(f"{place}/") for place in (self.root, *READ_ALWAYS)
        )
