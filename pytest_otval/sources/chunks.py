"""Making the tasks of a chunk, in a process of its own: read from scratch, patched, packed, written to scratch."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import threading
from collections.abc import Iterator, Sequence
from multiprocessing import parent_process
from multiprocessing.connection import wait
from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.sources.adapters.base import Refused, refused
from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.parts import Chunk, Raw
from pytest_otval.sources.patches import Patch, apply
from pytest_otval.sources.provenance import Made
from pytest_otval.task.digest import task_digest
from pytest_otval.task.pack import packed_task

Outcome = Made | Refused


def stay_with_parent() -> None:
    """Let this process end with the one that it works for, however that ends, and no sooner."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None, "is called in a process of a pool"

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def make_chunk(chunk: Chunk, patches: Sequence[Patch], dataset: str, scratch: Path) -> tuple[Path, list[Outcome]]:
    """Return a file with the packed tasks of a chunk, for ``packed_in``, and what became of each task.

    The folder of one task after the other is below ``scratch``.

    Raises OSError, SourceError where the source changed meanwhile.
    """
    out = chunk.file.with_name(f"{chunk.file.name}.{chunk.offset}")
    work = scratch / out.name
    outcomes: list[Outcome] = []
    with out.open("wb") as made:
        for task, source in _tasks(chunk):
            folder = work / task.name
            try:
                task.write(folder)
                outcome, packed = _make(task, source, folder, patches, dataset)
                pickle.dump(packed, made, pickle.HIGHEST_PROTOCOL)
                outcomes.append(outcome)
            except Conclusion as conclusion:
                if conclusion.reason != "bad-task":
                    raise
                outcomes.append(refused(task.record, "unreadable", conclusion.headline))
            shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(work, ignore_errors=True)
    return out, outcomes


def _make(task: Raw, source: str, folder: Path, patches: Sequence[Patch], dataset: str) -> tuple[Made, bytes]:
    """Return a task with its patches, and its packed form. Raises Conclusion ``bad-task``."""
    if not patches:
        return Made(task.name, task.record, source, source), packed_task(folder)
    done = apply(TaskEditor(folder, dataset), patches)
    digest = task_digest(folder) if done.applied or done.trouble else source
    return Made(task.name, task.record, source, digest, tuple(done.applied), tuple(done.trouble)), packed_task(folder)


def packed_in(made: Path, outcomes: Sequence[Outcome]) -> Iterator[tuple[str, bytes]]:
    """Yield name and packed form of each task in a file of ``make_chunk``."""
    with made.open("rb") as file:
        for one in outcomes:
            if isinstance(one, Made):
                yield one.name, pickle.load(file)


def _tasks(chunk: Chunk) -> Iterator[tuple[Raw, str]]:
    with chunk.file.open("rb") as spool:
        spool.seek(chunk.offset)
        for _ in range(chunk.count):
            yield pickle.load(spool)
