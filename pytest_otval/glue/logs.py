"""Where a stage writes its logs, and where they stay: in the writer's archive, or as loose files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_otval.evidence import Archive


class Logs:
    """The evidence of one process's items."""

    def __init__(self, out: Path, writer: str, loose: bool, scratch: Callable[[], Path]) -> None:
        """``loose`` keeps folders below ``out``; else they lie on ``scratch``, since the workspace counts files."""
        self._out = out
        self._writer = writer
        self._loose = loose
        self._scratch = scratch

    @cached_property
    def _archive(self) -> Archive:
        from pytest_otval.evidence import Archive

        return Archive(self._out, self._writer)

    @property
    def _root(self) -> Path:
        return self._out if self._loose else self._scratch()

    def folder(self, dataset: str, task: str, stage: str, fresh: bool) -> Path:
        """Return the folder of an item; ``fresh``: without what an item that ran before left there."""
        folder = self._root / "evidence" / dataset / task / stage
        if fresh:
            shutil.rmtree(folder, ignore_errors=True)
        return folder

    def keep(self, folder: Path) -> str:
        """Return the place of a folder of logs, once they are where they stay; empty where there are none."""
        if not folder.is_dir() or not any(folder.iterdir()):
            return ""
        evidence = folder.relative_to(self._root)
        if self._loose:
            return str(evidence)
        try:
            return self._archive.add(folder, str(evidence.relative_to("evidence")))
        except OSError as error:
            # The answer stands without its logs.
            return f"not kept: {error.strerror}"
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Let other processes have the archive."""
        if "_archive" in self.__dict__:
            self._archive.close()
