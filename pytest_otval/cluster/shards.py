"""Which items go to which job of an array.

All stages of a task stay together, because they share what a process remembers of it; tasks of one image stay together
as far as balance allows, because each job copies the images of its tasks to its node.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from pytest_otval.core import OtvalUsageError, stage_of
from pytest_otval.images.locks import write_whole

SCHEMA = 1
FILE = "shards.json"

USUAL_SECONDS = 20.0
"""Of an item of which nothing is known."""

AIM_SECONDS = 3600.0
"""What a job takes by default where work suffices: staging is nothing beside it, and a lost job is no great loss."""

WALL_SHARE = 0.5
"""Of a job's time limit that its items may take by what is recorded; the rest is for what was not foreseen."""

MOST_SHARDS = 400
"""By default: a job leaves three or four files on shared storage, and users have quotas on files."""

CHUNKS = 4
"""Tasks of one image are split where they would be more than this part of a shard."""

Plan = list[list[int]]
"""For each shard the numbers of its items, ascending."""


@dataclass(frozen=True, slots=True)
class Work:
    """An item, and what it is known to need."""

    id: str
    images: tuple[str, ...] = ()
    seconds: float | None = None
    """Wall time in an earlier run."""
    cpus: int = 1

    @property
    def task(self) -> str:
        """What stays together: the part of the node id before the stage, and an attempt by itself."""
        file, _, item = self.id.partition("::")
        return file if stage_of(item) == item else self.id


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the number of shards."""

    cpus: int
    """Cores of a job."""
    wall_seconds: float
    """Time limit of a job."""
    most: int
    """Jobs that an array, a user and a partition may have."""


def core_seconds(items: Sequence[Work]) -> list[float]:
    """Return what each item is expected to take, in seconds of one core; where nothing is known, as others do."""
    known = [item.seconds * item.cpus for item in items if item.seconds is not None]
    usual = fmean(known) if known else USUAL_SECONDS
    return [usual if item.seconds is None else item.seconds * item.cpus for item in items]


def shard_count(items: Sequence[Work], limits: Limits) -> int:
    """Return how many shards are enough, by default.

    Raises OtvalUsageError where so many as the time limit asks for may not be submitted.
    """
    total, tasks = sum(core_seconds(items)), len({item.task for item in items})
    wall = limits.wall_seconds * WALL_SHARE * limits.cpus
    least = math.ceil(total / wall)
    if least > limits.most:
        raise OtvalUsageError(
            f"{total / 3600:.1f} core-hours are more than {limits.most} jobs of {limits.cpus} cores and "
            f"{limits.wall_seconds / 3600:.1f} h should be asked for: give more --otval-cpus or a longer --otval-time"
        )
    wanted = math.ceil(total / min(wall, AIM_SECONDS * limits.cpus))
    return max(1, min(max(least, min(wanted, MOST_SHARDS)), limits.most, tasks))


def plan_shards(items: Sequence[Work], count: int) -> Plan:
    """Return the items of each of ``count`` shards, fewer where there are fewer tasks.

    The longest chunk goes to the emptiest shard first (Graham's rule): no shard is fuller than the mean by more than
    the largest chunk, which is a ``CHUNKS``-th of a shard or a single task.
    """
    seconds = core_seconds(items)
    tasks: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        tasks.setdefault(item.task, []).append(number)
    if not tasks:
        return []
    count = min(count, len(tasks))
    weights = {task: sum(seconds[number] for number in numbers) for task, numbers in tasks.items()}
    images = {item.task: item.images for item in items if item.images}
    chunks = _chunks(weights, images, sum(weights.values()) / count / CHUNKS, count)
    shards = [(0.0, shard, list[int]()) for shard in range(count)]
    for weight, chunk in sorted(((sum(weights[task] for task in chunk), chunk) for chunk in chunks), reverse=True):
        load, shard, numbers = heapq.heappop(shards)
        numbers += [number for task in chunk for number in tasks[task]]
        # A chunk of no weight still fills a shard: none is to be left empty.
        heapq.heappush(shards, (load + max(weight, 1e-6), shard, numbers))
    return [sorted(numbers) for _, _, numbers in sorted(shards, key=lambda entry: entry[1])]


def _chunks(
    weights: Mapping[str, float], images: Mapping[str, tuple[str, ...]], most: float, least: int
) -> list[list[str]]:
    """Return tasks by image, split so that no chunk of several weighs more than ``most`` and there are ``least``."""
    together: dict[tuple[str, ...], list[str]] = {}
    for task in weights:
        # What is not known to share an image is by itself.
        together.setdefault(images.get(task) or (task,), []).append(task)
    chunks: list[list[str]] = []
    for group in together.values():
        chunk, load = list[str](), 0.0
        for task in group:
            if chunk and load + weights[task] > most:
                chunks.append(chunk)
                chunk, load = [], 0.0
            chunk.append(task)
            load += weights[task]
        chunks.append(chunk)
    while len(chunks) < least:
        chunks.sort(key=len)
        largest = chunks.pop()
        chunks += [largest[: len(largest) // 2], largest[len(largest) // 2 :]]
    return chunks


def write_plan(folder: Path, plan: Plan) -> None:
    """Write ``shards.json`` into a run folder. Raises OSError."""
    write_whole(folder / FILE, (json.dumps({"v": SCHEMA, "shards": plan}, separators=(",", ":")) + "\n").encode())


def read_plan(folder: Path) -> Plan:
    """Return the plan of a run folder. Raises OtvalUsageError where there is none, or none that we wrote."""
    path = folder / FILE
    try:
        values = json.loads(path.read_bytes())
        plan = values["shards"] if values["v"] == SCHEMA else None
    except (OSError, ValueError, KeyError, TypeError):
        plan = None
    if not isinstance(plan, list) or not all(map(_is_shard, plan)):
        raise OtvalUsageError(f"{folder} was not submitted: it has no {FILE} that can be read")
    return plan


def _is_shard(numbers: object) -> bool:
    return isinstance(numbers, list) and all(type(number) is int and number >= 0 for number in numbers)
