"""``prepare``: from a pristine source and patches to the tasks of a dataset, as Parquet files in the workspace.

A pure function: equal sources, patches and code give equal bytes. Each part of a dataset is a file named by what went
into it, so one that is there is taken as it is, after an interruption as after a change elsewhere. The dataset appears
whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_otval.checks.version import package_version
from pytest_otval.core import OtvalUsageError
from pytest_otval.images.locks import half_name, locked_now, sweep_half, write_whole
from pytest_otval.runtimes.named import NotNamedError, with_named_before
from pytest_otval.sources.adapters.base import Refused
from pytest_otval.sources.chunks import Outcome, make_chunk, packed_in, stay_with_parent
from pytest_otval.sources.files import SourceError
from pytest_otval.sources.parts import CHUNK_TASKS, MIN_TASKS, Chunk, Part, Spool, Tasks
from pytest_otval.sources.patches import Patch
from pytest_otval.sources.place import own_scratch, quick_scratch
from pytest_otval.sources.provenance import Made, Origin, Prepared, lines_of, read_lines
from pytest_otval.task.buildkit import may_fork
from pytest_otval.task.dataset import DATASET_TOML
from pytest_otval.task.digest import task_content
from pytest_otval.task.pack import parquet_rows
from pytest_otval.task.packed.parquet import parquet_notes
from pytest_otval.workspace import scratch

DATA = "data"
MAKERS = ("core.py", "sources", "harden", "checks", "task", "data/adapters")
"""What of our package the tasks of a dataset come from."""


def recipe_digest(dataset: Path, patches: Sequence[Patch]) -> str:
    """Return a digest of all that makes tasks of a source: a dataset's files but settings and documents, our code.

    What dataset.toml says of the source is compared by itself: other settings make no other tasks.
    """
    total = hashlib.sha256(package_version(MAKERS).encode())
    for patch in patches:
        total.update(json.dumps([patch.id, patch.fault, patch.tasks, patch.after, patch.inputs()]).encode())
    for path, facts in sorted(task_content(dataset)[1].items()):
        if path != DATASET_TOML and not path.endswith(".md") and "__pycache__" not in path and path[0] != ".":
            total.update(f"{path}\0{facts}\0".encode())
    return total.hexdigest()[:16]


def work_folder(target: Path) -> Path:
    """Return where a dataset is made; what an interrupted run made is kept there."""
    return target.with_name(f".{target.name}.making")


@contextmanager
def preparing(target: Path) -> Iterator[None]:
    """Be the only one that makes this dataset. Raises SourceError where somebody else does, OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with locked_now(target.with_name(f".{target.name}.lock")) as mine:
        if not mine:
            raise SourceError(f"another process prepares {target.name} now: wait for it, or end it")
        yield


def make(
    tasks: Tasks,
    patches: Sequence[Patch],
    origin: Origin,
    dataset: Path,
    target: Path,
    say: Callable[[str], None],
    processes: int | None = None,
) -> Prepared:
    """Make a dataset as the folder ``target``; ``dataset`` has its dataset.toml. Raises SourceError, OSError.

    ``say`` is told how far it is. To be called by one process at a time, see ``preparing``.
    """
    prepared = Prepared(origin)
    work = work_folder(target)
    (work / DATA).mkdir(parents=True, exist_ok=True)
    sweep_half(work / DATA)
    known = [work / DATA, target / DATA]
    count = processes or len(os.sched_getaffinity(0))
    with (
        own_scratch(scratch()) as disk,
        own_scratch(quick_scratch(count)) as quick,
        _pool(patches, target.name, quick, count) as pool,
    ):
        spool = Spool(origin.recipe, disk)
        for ready in _in_parallel(spool.parts(tasks), known, pool, count):
            tasks_of_part, refused_then = ready.put(work / DATA, len(prepared.parts))
            prepared.add(ready.key, ready.known is None, tasks_of_part, refused_then)
            say(f"{len(prepared.tasks)} tasks")
        prepared.refused[:0] = spool.refused
    _finish(prepared, dataset, work, target)
    _swap(work, target)
    return prepared


_WORK: tuple[Sequence[Patch], str, Path] = ((), "", Path())
"""Patches, dataset, scratch: functions of a patch.py cannot be sent to other processes, which are forks of this one."""


class _Here(Executor):
    """Makes chunks in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


@contextmanager
def _pool(patches: Sequence[Patch], dataset: str, scratch: Path, count: int) -> Iterator[Executor]:
    """Give processes that make chunks; this one where no other can be had."""
    global _WORK
    _WORK = (patches, dataset, scratch)
    if not may_fork():
        yield _Here()
        return
    # Unlike a pool of multiprocessing, it does not wait for ever for a process that was killed.
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("fork"), stay_with_parent)
    try:
        # All are forked now: before a source is open, and before an adapter loads what no fork survives.
        pool.submit(os.getpid).result()
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _make_chunk(chunk: Chunk) -> tuple[Path, list[Outcome]]:
    return make_chunk(chunk, *_WORK)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A part whose tasks are made, or known."""

    key: str
    known: Path | None
    """The same part, from an earlier time."""
    chunks: list[tuple[Path, list[Outcome]]]

    def put(self, folder: Path, number: int) -> tuple[list[Made], list[Refused]]:
        """Write the part into a folder of parts, whole or not at all, and return what is in it. Raises OSError."""
        file = folder / f"part-{number:05}-{self.key}.parquet"
        if self.known is not None and self.known != file:
            _link(self.known, file)
        elif self.known is None:
            self._write(file)
        return read_lines(parquet_notes(file).splitlines())

    def _write(self, file: Path) -> None:
        half = half_name(file)
        outcomes = [outcome for _, made in self.chunks for outcome in made]
        try:
            with parquet_rows(half, notes=lines_of(outcomes)) as add:
                for packed, made in self.chunks:
                    for name, task in packed_in(packed, made):
                        add(name, task)
                    packed.unlink()
            _sync(half)
            half.replace(file)
        finally:
            half.unlink(missing_ok=True)


def _in_parallel(parts: Iterator[Part], known: Sequence[Path], pool: Executor, count: int) -> Iterator[_Ready]:
    """Make parts, enough of them ahead of the one that is waited for to keep all processes at work."""
    ahead = 1 + -(-count * CHUNK_TASKS // MIN_TASKS)
    waiting: deque[tuple[Part, Path | None, list[Future[tuple[Path, list[Outcome]]]]]] = deque()
    for part in parts:
        file = _known(part.key, known)
        waiting.append((part, file, [] if file else [pool.submit(_make_chunk, chunk) for chunk in part.chunks]))
        if len(waiting) > ahead:
            yield _ready(*waiting.popleft())
    while waiting:
        yield _ready(*waiting.popleft())


def _ready(part: Part, known: Path | None, chunks: list[Future[tuple[Path, list[Outcome]]]]) -> _Ready:
    made = [chunk.result() for chunk in chunks]
    part.file.unlink()
    return _Ready(part.key, known, made)


def _known(key: str, folders: Iterable[Path]) -> Path | None:
    """Return a whole part of this key."""
    for folder in folders:
        for file in folder.glob(f"part-*-{key}.parquet"):
            try:
                read_lines(parquet_notes(file).splitlines())
            except (OtvalUsageError, ValueError, TypeError, KeyError):
                continue
            return file
    return None


def _link(file: Path, place: Path) -> None:
    """Put a part elsewhere, too."""
    half = half_name(place)
    try:
        os.link(file, half)
    except OSError:
        shutil.copyfile(file, half)
    half.replace(place)


def _sync(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


def _finish(prepared: Prepared, dataset: Path, work: Path, target: Path) -> None:
    """Write what belongs to the dataset and to no part, and remove parts of earlier tries."""
    names = {f"part-{number:05}-{key}.parquet" for number, key in enumerate(prepared.parts)}
    for file in (work / DATA).iterdir():
        if file.name not in names:
            file.unlink()
    write_settings(dataset, work, target)
    prepared.write(work)


def write_settings(dataset: Path, folder: Path, target: Path) -> None:
    """Write the settings that the dataset has now into a folder with its tasks.

    Runtimes that ``target`` has named stay named. Raises SourceError where its dataset.toml cannot name them.
    """
    try:
        settings = with_named_before((dataset / DATASET_TOML).read_bytes(), target / DATASET_TOML)
    except NotNamedError as error:
        raise SourceError(f"{dataset}: {error}") from None
    place = folder / DATASET_TOML
    if not place.exists() or place.read_bytes() != settings:
        write_whole(place, settings, 0o644)


def _swap(work: Path, target: Path) -> None:
    """Put what was made where it belongs, in place of what is there."""
    old = target.with_name(f".{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    work.rename(target)
    shutil.rmtree(old, ignore_errors=True)
