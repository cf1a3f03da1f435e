"""The order of work: what goes to one worker as a whole, which of it comes first, and who may take it.

Longest first, by what earlier runs took, so that no long task begins when all others are done; those within a factor of
two count as equal, and among them tasks of one image stand together. What nothing is known of counts as usual.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import fmean

from pytest_otval.core import stage_of
from pytest_otval.glue.locality import Outlook
from pytest_otval.stages.spec import JUDGE_TRACE
from pytest_otval.task.index import TASK_TOML

Look = Callable[[str, str, bool], Outlook]
"""Tells what is known of a task, by its dataset, its name, and whether its image matters."""

Known = Callable[[str, str, Sequence[str]], bool]
"""Tells whether items of a task, by its dataset and name, are likely to be answered already."""

QUICK_TOGETHER = 8
"""How many quick units a worker gets at a time: telling it of each costs more than running it."""


def unit_of(nodeid: str) -> str:
    """Return what goes to one worker as a whole: a task with its stages; an attempt and any other test by itself."""
    file, _, item = nodeid.partition("::")
    return file if file.endswith(f"/{TASK_TOML}") and stage_of(item) == item else nodeid


@dataclass(slots=True)
class Unit:
    """Items that go to one worker, in their order."""

    items: deque[int] = field(default_factory=deque)
    """Numbers of those that have not ended."""
    image: str = ""
    """What they share with other units; "" where that is unknown or no item needs an image."""
    ready: bool = False
    """Whether the image was there before the run."""
    seconds: float | None = None
    """What they took in earlier runs."""
    quick: bool = False
    """Whether no item starts a container."""
    known: bool = False
    """Whether all items are likely to be answered already."""


def make_units(collection: Sequence[str], outlook: Look, known: Known = lambda dataset, task, ids: False) -> list[Unit]:
    """Return the units of a collection of node ids, in its order.

    Attempts that are reviewed in the same run stay with their task: they must have ended before the review begins.
    """
    reviewed = {file for file, _, item in (nodeid.partition("::") for nodeid in collection) if item == JUDGE_TRACE.name}
    numbers: dict[str, deque[int]] = {}
    for number, nodeid in enumerate(collection):
        file = nodeid.partition("::")[0]
        numbers.setdefault(file if file in reviewed else unit_of(nodeid), deque()).append(number)
    return [_unit(name, items, collection, outlook, known) for name, items in numbers.items()]


def _unit(name: str, items: deque[int], collection: Sequence[str], outlook: Look, known: Known) -> Unit:
    file, _, _ = name.partition("::")
    parts = file.split("/")
    if not file.endswith(f"/{TASK_TOML}") or len(parts) != 5:
        return Unit(items)
    stages = [stage_of(collection[item].rpartition("::")[2]) for item in items]
    quick = not any(map(needs_image, stages))
    about = outlook(parts[1], parts[3], not quick)
    times = [about.seconds[stage] for stage in stages if stage in about.seconds]
    is_known = known(parts[1], parts[3], [collection[item] for item in items])
    return Unit(items, about.image, about.ready, sum(times) if times else None, quick, is_known)


def needs_image(stage: str) -> bool:
    """Whether a stage's first act is to have the task's image made."""
    return stage != "static"


def in_order(units: Sequence[Unit]) -> list[Unit]:
    """Return units in the order they are handed out: what is answered already comes last."""
    times = [unit.seconds for unit in units if unit.seconds is not None]
    usual = fmean(times) if times else 0.0
    places: dict[Hashable, int] = {}
    keys = []
    for number, unit in enumerate(units):
        seconds = usual if unit.seconds is None else unit.seconds
        size = math.frexp(seconds)[1] if seconds > 1 else 0
        place = places.setdefault((size, unit.image), number) if unit.image else number
        keys.append((unit.known, -size, place, -seconds, number))
    return [units[key[-1]] for key in sorted(keys)]


@dataclass(slots=True)
class _Block:
    image: str
    units: deque[Unit]


class Queue:
    """Units that wait. While an image is being made for the first time its other tasks wait for it, if others do not.

    ``Worker`` is anything that can be told from others.
    """

    def __init__(self, units: Iterable[Unit] = ()) -> None:
        units = in_order(list(units))
        self._blocks: OrderedDict[int, _Block] = OrderedDict()
        for number, (image, together) in enumerate(groupby(units, key=lambda unit: unit.image)):
            self._blocks[number] = _Block(image, deque(together))
        self._next = len(self._blocks)
        self._made = {unit.image for unit in units if unit.ready} | {""}
        self._makers: dict[str, Hashable] = {}

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def take(self, worker: Hashable) -> list[Unit]:
        """Return the next unit for a worker, or some quick ones. There must be one."""
        free = (key for key, block in self._blocks.items() if self._is_free(block.image, worker))
        key = next(free, next(iter(self._blocks)))
        block = self._blocks[key]
        units = [block.units.popleft()]
        while units[0].quick and len(units) < QUICK_TOGETHER and block.units and block.units[0].quick:
            units.append(block.units.popleft())
        if not block.units:
            del self._blocks[key]
        if block.image not in self._made:
            self._makers.setdefault(block.image, worker)
        return units

    def _is_free(self, image: str, worker: Hashable) -> bool:
        return image in self._made or self._makers.get(image, worker) == worker

    def put(self, unit: Unit, first: bool) -> None:
        """Take a unit back, as the first or the last of all."""
        self._blocks[self._next] = _Block(unit.image, deque([unit]))
        self._blocks.move_to_end(self._next, last=not first)
        self._next += 1

    def image_made(self, image: str) -> None:
        """Note that an item that needs an image has ended: it is there now, or cannot be had."""
        self._made.add(image)

    def forget(self, worker: Hashable) -> None:
        """Note that a worker died, perhaps while it made an image."""
        self._makers = {image: maker for image, maker in self._makers.items() if maker != worker}
