"""``prepare``: from a pristine source and patches to the tasks of a dataset, as Parquet files in the workspace.

A pure function: equal sources, patches and code give equal bytes. Tasks are made in parts of a fixed number. Each part
is a file named by what went into it, so one that is there is taken as it is, after an interruption as after a change
elsewhere. The dataset appears whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from pytest_otval.checks.version import package_version
from pytest_otval.core import NAME, Conclusion, printable
from pytest_otval.images.locks import write_whole
from pytest_otval.runtimes.named import NotNamedError, with_named_before
from pytest_otval.sources.adapters.base import Refused, refused
from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.files import SourceError
from pytest_otval.sources.patches import Outcome, Patch, apply
from pytest_otval.task.buildkit import may_fork
from pytest_otval.task.dataset import DATASET_TOML
from pytest_otval.task.digest import task_digest
from pytest_otval.task.pack import parquet_writer

PART_TASKS = 256
DATA = "data"
PROVENANCE = "provenance.json"
MAKERS = ("core.py", "sources", "harden", "checks", "task")
"""What of our package the tasks of a dataset come from."""


class Raw(Protocol):
    """A task as its source has it."""

    @property
    def name(self) -> str:
        """Its name in the dataset."""

    def write(self, folder: Path) -> None:
        """Write its files into a folder, which is made here. Raises SourceError, Conclusion ``bad-task``."""


Tasks = Iterable[Raw | Refused]


@dataclass(frozen=True, slots=True)
class Made:
    """A task of the dataset."""

    name: str
    source: str
    """Digest of the task as its source has it."""
    digest: str
    patches: tuple[str, ...]
    trouble: tuple[str, ...]
    """A line for each patch that could not be applied."""


@dataclass(slots=True)
class Prepared:
    """What a dataset came to."""

    recipe: str
    """Digest of patches and code."""
    tasks: list[Made] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    taken: int = 0
    """Parts that were there already."""
    names: set[str] = field(default_factory=set)
    """Of all tasks of the source, of those that are refused, too."""

    def applied(self) -> Counter[str]:
        """Return to how many tasks each patch was applied."""
        return Counter(patch for task in self.tasks for patch in task.patches)

    def trouble(self) -> list[str]:
        """Return what went wrong, a line each."""
        return [printable(f"{task.name}: {line}") for task in self.tasks for line in task.trouble]


def recipe_digest(script: Path, patches: Sequence[Patch]) -> str:
    """Return a digest of all that makes tasks of a source: patch.py, its patches and what they read, our code."""
    content = script.read_bytes() if script.is_file() else b""
    names = json.dumps([[patch.id, patch.fault, patch.tasks, patch.after, patch.inputs()] for patch in patches])
    parts = (content, names.encode(), package_version(MAKERS).encode())
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:16]


def make(
    tasks: Tasks,
    patches: Sequence[Patch],
    recipe: str,
    dataset: Path,
    target: Path,
    say: Callable[[str], None],
    processes: int | None = None,
) -> Prepared:
    """Make a dataset as the folder ``target``; ``dataset`` has its dataset.toml. Raises SourceError, OSError.

    ``say`` is told how far it is.
    """
    prepared = Prepared(recipe)
    work = target.parent / f".{target.name}.making"
    (work / DATA).mkdir(parents=True, exist_ok=True)
    names: list[str] = []
    with tempfile.TemporaryDirectory(prefix="otval-prepare-") as scratch:
        parts = _written(tasks, Path(scratch), recipe, prepared, target.name)
        for number, part in enumerate(_in_parallel(parts, patches, [work / DATA, target / DATA], processes)):
            name = f"part-{number:05}-{part.key}.parquet"
            _take(part.file, work / DATA / name)
            names.append(name)
            prepared.tasks += part.made
            prepared.taken += part.taken
            say(f"{len(prepared.tasks)} tasks")
    _finish(prepared, dataset, work, target, set(names))
    old = target.with_name(f".{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    work.rename(target)
    shutil.rmtree(old, ignore_errors=True)
    return prepared


@dataclass(frozen=True, slots=True)
class _Part:
    """Tasks on scratch, as their source has them."""

    folder: Path
    digests: tuple[tuple[str, str], ...]
    """Name and digest of each."""
    key: str
    dataset: str


@dataclass(frozen=True, slots=True)
class _MadePart:
    key: str
    file: Path
    made: tuple[Made, ...]
    taken: bool


def _written(tasks: Tasks, scratch: Path, recipe: str, prepared: Prepared, dataset: str) -> Iterator[_Part]:
    """Write the tasks of a source to scratch, a part at a time; records that give none are noted."""
    stream = iter(tasks)
    for number in range(1 << 30):
        folder = scratch / str(number)
        folder.mkdir()
        digests = tuple(_each(islice(stream, PART_TASKS), folder, prepared))
        if not digests:
            # A part may have nothing but refusals in it.
            first = next(stream, None)
            if first is None:
                return
            stream = _chained(first, stream)
            continue
        key = hashlib.sha256(json.dumps([recipe, digests]).encode()).hexdigest()[:16]
        yield _Part(folder, digests, key, dataset)


def _chained(first: Raw | Refused, rest: Iterator[Raw | Refused]) -> Iterator[Raw | Refused]:
    yield first
    yield from rest


def _each(tasks: Iterable[Raw | Refused], folder: Path, prepared: Prepared) -> Iterator[tuple[str, str]]:
    for task in tasks:
        if isinstance(task, Refused):
            prepared.refused.append(task)
            continue
        if task.name in prepared.names:
            raise SourceError(f"two tasks of the source are called {printable(task.name)}")
        prepared.names.add(task.name)
        if not NAME.fullmatch(task.name):
            prepared.refused.append(refused(task.name, "bad-name", "its name cannot stand in a node id"))
            continue
        try:
            task.write(folder / task.name)
        except (SourceError, Conclusion) as error:
            shutil.rmtree(folder / task.name, ignore_errors=True)
            prepared.refused.append(refused(task.name, "unreadable", str(error)))
            continue
        yield task.name, task_digest(folder / task.name)


_PATCHES: Sequence[Patch] = ()
"""Of this process: functions of a dataset's patch.py cannot be sent to another one, which is a fork of this."""


def _in_parallel(
    parts: Iterator[_Part], patches: Sequence[Patch], known: Sequence[Path], processes: int | None
) -> Iterator[_MadePart]:
    """Make parts by several processes, a few ahead of the one that is waited for."""
    global _PATCHES
    _PATCHES = patches
    if not may_fork():
        yield from (_make_part(part, list(known)) for part in parts)
        return
    count = processes or len(os.sched_getaffinity(0))
    waiting: deque[Future[_MadePart]] = deque()
    # Unlike a pool of multiprocessing, it does not wait for ever for a process that was killed.
    with ProcessPoolExecutor(count, multiprocessing.get_context("fork")) as pool:
        # All are forked here, before an adapter loads what no fork survives.
        pool.submit(int).result()
        for part in parts:
            waiting.append(pool.submit(_make_part, part, list(known)))
            if len(waiting) > 2 * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _make_part(part: _Part, known: Sequence[Path]) -> _MadePart:
    """Return a part, as it was made before or now."""
    try:
        for folder in known:
            for file in folder.glob(f"part-*-{part.key}.parquet"):
                made = _read_made(file)
                if made is not None:
                    return _MadePart(part.key, file, made, True)
        return _MadePart(part.key, *_pack(part), False)
    finally:
        shutil.rmtree(part.folder, ignore_errors=True)


def _pack(part: _Part) -> tuple[Path, tuple[Made, ...]]:
    file = part.folder.parent / f"{part.key}.parquet"
    found = []
    with parquet_writer(file) as add:
        for name, source in part.digests:
            folder = part.folder / name
            outcome = apply(TaskEditor(folder, part.dataset), _PATCHES) if _PATCHES else Outcome()
            add(name, folder)
            found.append(Made(name, source, task_digest(folder), tuple(outcome.applied), tuple(outcome.trouble)))
    lines = json.dumps([asdict(one) for one in found], separators=(",", ":"))
    write_whole(_beside(file), lines.encode())
    return file, tuple(found)


def _beside(file: Path) -> Path:
    """Return where stands what is in a part."""
    return file.with_suffix(".json")


def _read_made(file: Path) -> tuple[Made, ...] | None:
    try:
        values = json.loads(_beside(file).read_bytes())
        return tuple(
            Made(**{**one, "patches": tuple(one["patches"]), "trouble": tuple(one["trouble"])}) for one in values
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _made(values: dict[str, Any]) -> Made:
    lists = {name: tuple(values[name]) for name in ("patches", "trouble")}
    return Made(**{**values, **lists})


def _take(file: Path, target: Path) -> None:
    """Put a part where it belongs: by a link where it stays where it was, too."""
    for source, place in ((_beside(file), _beside(target)), (file, target)):
        if source == place:
            continue
        place.unlink(missing_ok=True)
        try:
            os.link(source, place)
        except OSError:
            shutil.copyfile(source, place)


def _finish(prepared: Prepared, dataset: Path, work: Path, target: Path, names: set[str]) -> None:
    """Write what belongs to the dataset and to no part, and remove parts of earlier tries.

    Runtimes that the dataset named stay named. Raises SourceError where its dataset.toml cannot name them.
    """
    for file in (work / DATA).iterdir():
        if file.with_suffix(".parquet").name not in names:
            file.unlink()
    try:
        settings = with_named_before((dataset / DATASET_TOML).read_bytes(), target / DATASET_TOML)
    except NotNamedError as error:
        raise SourceError(f"{dataset}: {error}") from None
    write_whole(work / DATASET_TOML, settings)
    facts = {
        "v": 1,
        "recipe": prepared.recipe,
        "patches": dict(sorted(prepared.applied().items())),
        "refused": [asdict(one) for one in prepared.refused],
    }
    write_whole(work / PROVENANCE, (json.dumps(facts, indent=1) + "\n").encode())
