"""What below some folders asks for images: tasks, packed tasks, and folders with nothing but a Dockerfile."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.images.model import ImageRequest
from pytest_otval.stages.question import image_requests, require_runnable
from pytest_otval.task.dataset import DATASET_TOML, dataset_folder
from pytest_otval.task.index import has_packed_tasks, is_dataset, is_prepared, is_task
from pytest_otval.task.load import load_task
from pytest_otval.task.packed.forms import SHARD_FOLDER
from pytest_otval.task.source import source_of


@dataclass(frozen=True, slots=True)
class Environment:
    """A task, or a folder that is the context of a Dockerfile."""

    name: str
    """Its path, as the user would name it. Hostile."""
    folder: Path
    dataset: Path
    """The folder of its dataset: of a packed task the one that the packed file is in."""
    is_task: bool = True
    refused: Conclusion | None = None
    """Why a packed task cannot be unpacked."""

    def requests(self) -> list[ImageRequest]:
        """Return what it asks of the image store, each once: the agent's image first, then those of verifiers.

        Raises Conclusion for a task that no sandbox can run, whatever the machine.
        """
        if self.refused is not None:
            raise self.refused
        if not self.is_task:
            return [ImageRequest(self.folder, None, float("inf"))]
        task = load_task(self.folder, self.folder.parent.name)
        # GPUs are this machine's matter: their absence keeps no image from being made elsewhere.
        require_runnable(task, here=False)
        asked = {(request.context, request.docker_image): request for request in image_requests(task)}
        return list(asked.values())

    def requests_of_any_run(self) -> list[ImageRequest]:
        """Return what ``requests`` does, and what a run that builds every Dockerfile asks for beside it."""
        asked = self.requests()
        built = [replace(request, docker_image=None) for request in asked if _has_dockerfile(request)]
        return [*asked, *built]


def environments_below(paths: Iterable[Path], scratch: Path) -> Iterator[Environment]:
    """Yield the environments at and below paths, in the order of their names; one at a time is in memory.

    A packed task is unpacked below ``scratch`` while it is the one at hand. Of links to folders those to tasks and
    datasets are followed, and a path that is a dataset without tasks stands for its prepared form in the workspace, as
    in a test run. Raises OtvalUsageError for a path that is no folder.
    """
    seen: set[tuple[int, int]] = set()
    for path in paths:
        if not path.is_dir():
            raise OtvalUsageError(f"{path} is no folder: give tasks, datasets, or folders that hold them")
        todo = [_prepared(path)]
        while todo:
            folder = todo.pop()
            if not _is_new(folder, seen):
                continue
            if is_task(folder):
                yield Environment(str(folder), folder, dataset_folder(folder))
                continue
            if _is_regular(folder / "Dockerfile"):
                yield Environment(str(folder), folder, folder, is_task=False)
            packed = has_packed_tasks(folder)
            if packed:
                yield from _packed(folder, scratch)
            # What lies in a dataset's folder of packed files was yielded with it.
            todo += reversed([one for one in _folders(folder) if not (packed and one.name == SHARD_FOLDER)])


def _prepared(path: Path) -> Path:
    workspace = os.environ.get("OT_WORKSPACE", "")
    if not workspace or is_prepared(path) or not os.path.isfile(path / DATASET_TOML):  # noqa: PTH113
        return path
    prepared = Path(workspace) / "datasets" / path.absolute().name
    return prepared if is_prepared(prepared) else path


def _is_new(folder: Path, seen: set[tuple[int, int]]) -> bool:
    try:
        facts = folder.stat()
    except OSError:
        return False
    identity = (facts.st_dev, facts.st_ino)
    new = identity not in seen
    seen.add(identity)
    return new


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            children = [(entry.is_symlink(), folder / entry.name) for entry in entries if entry.name != ".git"]
    except OSError:
        return []
    return sorted(
        child
        for is_link, child in children
        if os.path.isdir(child) and not (is_link and not is_task(child) and not is_dataset(child))  # noqa: PTH112
    )


def _packed(dataset: Path, scratch: Path) -> Iterator[Environment]:
    source = source_of(dataset)
    for name in source.names()[0]:
        shown = f"{dataset}/tasks/{name}"
        try:
            folder = source.folder(name, scratch)
        except Conclusion as conclusion:
            yield Environment(shown, dataset, dataset, refused=conclusion)
            continue
        yield Environment(shown, folder, dataset)
        if folder.is_relative_to(scratch):
            shutil.rmtree(folder, ignore_errors=True)


def _has_dockerfile(request: ImageRequest) -> bool:
    context = request.context
    return bool(request.docker_image) and context is not None and os.path.lexists(context / "Dockerfile")


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
