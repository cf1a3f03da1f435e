"""What the controller knows of a task before it runs: which tasks need the same image, and how long stages took.

Nothing of it decides a verdict: a wrong guess costs time. A worker's nodes are not there, and no task is parsed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_otval.glue.selection import Selection
from pytest_otval.history import Record, read_history
from pytest_otval.task.index import TASK_TOML, tasks_folder
from pytest_otval.task.reading import NotReadableError, is_folder, read_regular

_DOCKER_IMAGE = re.compile(rb"""^[ \t]*docker_image[ \t]*=[ \t]*["']([^"'\n]+)["']""", re.MULTILINE)
_MOST_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is known of a task."""

    image: str = ""
    """Equal for tasks whose images have a beginning in common, or are the same; "" where nothing is known."""
    ready: bool = False
    """Whether the image is there already, as far as earlier runs tell."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """By stage, of the latest run."""


class Outlooks:
    """Looks tasks up by dataset and name."""

    def __init__(self, selection: Selection, workspace: Path, force_build: bool = False) -> None:
        """``force_build`` is the run's setting: docker_image does not count where there is a Dockerfile."""
        self._selection = selection
        self._workspace = workspace
        self._force_build = force_build
        self._history: dict[str, Mapping[str, Record]] = {}
        self._tasks: dict[str, Path] = {}
        self._ready: dict[str, bool] = {}

    def get(self, dataset: str, task: str, with_image: bool) -> Outlook:
        """Return what is known of a task; its files are looked at for the image only."""
        if dataset not in self._history:
            self._history[dataset] = read_history(self._workspace / "history", dataset)
            self._tasks[dataset] = tasks_folder(self._selection[dataset].path)
        record = self._history[dataset].get(task, Record())
        if not with_image:
            return Outlook(seconds=record.seconds)
        image = image_hint(self._tasks[dataset] / task, self._force_build) or record.image
        return Outlook(image, self._is_ready(record.image), record.seconds)

    def _is_ready(self, key: str) -> bool:
        if not re.fullmatch(r"[0-9a-f]{64}", key):
            return False
        if key not in self._ready:
            self._ready[key] = (self._workspace / "images" / f"{key}.json").is_file()
        return self._ready[key]


def image_hint(task: Path, force_build: bool) -> str:
    """Return what is equal for tasks that share an image or its beginning, from bytes alone; "" where nothing tells.

    That is the line docker_image of task.toml, else the Dockerfile: of two tasks with the same one that copy different
    files, all before the first COPY is the same.
    """
    named = None if force_build else _DOCKER_IMAGE.search(_bytes(task / TASK_TOML))
    if named is not None:
        return f"image:{named[1].decode(errors='replace')}"
    environment = task / "environment"
    dockerfile = _bytes(environment / "Dockerfile") if is_folder(environment) else b""
    return f"dockerfile:{hashlib.blake2b(dockerfile, digest_size=16).hexdigest()}" if dockerfile else ""


def _bytes(path: Path) -> bytes:
    try:
        return read_regular(path, _MOST_BYTES)
    except (FileNotFoundError, NotReadableError):
        return b""
