"""What to do about items without an answer whose jobs are over: submit them again, alone if need be, or give up.

Decided from what stands in the run folder alone, so whoever looks decides the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from pytest_otval.cluster.journal import Attempt
from pytest_otval.cluster.submission import Array, Element

KILLS = 2
"""An item that was running when so many jobs were killed runs alone the next time."""

TRIES = 3
"""So many jobs one after the other that answer nothing are enough."""

NODE_FAILURES, SAME_FAILURES = 3, 2
"""A node on which jobs of so many shards failed, or a shard so often by the node's fault, gets no more of them."""

Place = tuple[int, int]
"""An element: number of its array, and its own in it."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """An item that gets an error for an answer."""

    item: int
    reason: str
    """Reason class."""
    headline: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done."""

    elements: tuple[Element, ...] = ()
    """To be submitted as the next array."""
    given_up: tuple[GivenUp, ...] = ()
    exclude: tuple[str, ...] = ()
    """Nodes."""


@dataclass(frozen=True, slots=True)
class Silent:
    """An element that is over and wrote down nothing: it did not get as far as that."""

    why: str
    """Its last words."""
    node: str = ""
    """Empty where Slurm does not know it any more."""


@dataclass(slots=True)
class Past:
    """What happened so far."""

    arrays: Sequence[Array]
    attempts: Sequence[Attempt]
    live: Set[Place]
    """Elements that Slurm runs or will run."""
    silent: Mapping[Place, Silent] = field(default_factory=dict)
    since: int = 0
    """The array with which the run last went on: what was before does not count."""

    def over(self) -> list[Attempt]:
        """Return the attempts that do nothing more."""
        latest: dict[str, int] = {}
        attempts = [attempt for attempt in self.attempts if attempt.array >= self.since]
        for attempt in attempts:
            latest[attempt.job] = max(attempt.restart, latest.get(attempt.job, 0))
        return [
            attempt
            for attempt in attempts
            if attempt.ended or attempt.restart < latest[attempt.job] or attempt.place not in self.live
        ]


def recover(past: Past, missing: Sequence[int], ids: Sequence[str], plan: Sequence[Sequence[int]]) -> Plan:
    """Return what is to be done about items without an answer that no live element is for.

    ``missing`` are their numbers, ``ids`` the node ids of all items, ``plan`` the run's shards.
    """
    over = past.over()
    kills, alone = _kills(past, over, {ids[number] for number in missing})
    shard_of = {number: shard for shard, numbers in enumerate(plan) for number in numbers}
    fruitless = _fruitless(past, over)
    together: dict[int, list[int]] = defaultdict(list)
    elements: list[Element] = []
    given_up: list[GivenUp] = []
    for number in missing:
        id, shard = ids[number], shard_of[number]
        suspect = kills[id] >= KILLS
        tries = fruitless.get((shard, number if suspect else None), _Tries())
        if id in alone:
            given_up.append(
                GivenUp(number, "crashed", f"{kills[id]} jobs that ran it were killed, the last ran nothing else")
            )
        elif tries.count >= TRIES:
            given_up.append(
                GivenUp(number, tries.reason, f"{tries.count} jobs one after the other answered nothing: {tries.why}")
            )
        elif suspect:
            elements.append(Element(shard, (number,), alone=True))
        else:
            together[shard].append(number)
    elements += [Element(shard, tuple(numbers)) for shard, numbers in sorted(together.items())]
    return Plan(tuple(elements), tuple(given_up), bad_nodes(past, over))


def _kills(past: Past, over: Sequence[Attempt], missing: Set[str]) -> tuple[Counter[str], set[str]]:
    """Return how often items ran when a job was killed, and those that ran alone at that."""
    kills: Counter[str] = Counter()
    alone: set[str] = set()
    for attempt in over:
        if attempt.ended and attempt.fault != "item":
            continue
        suspects = attempt.started & missing
        kills.update(suspects)
        array, element = attempt.place
        if past.arrays[array].elements[element].alone:
            alone |= suspects
    return kills, alone


@dataclass(slots=True)
class _Tries:
    count: int = 0
    why: str = ""
    reason: str = "killed"
    """Class of the answer where there are too many."""


def _fruitless(past: Past, over: Sequence[Attempt]) -> dict[tuple[int, int | None], _Tries]:
    """Return how many elements in a row, up to the latest, answered nothing: by shard, and item of those alone."""
    answers: Counter[Place] = Counter()
    why = {place: one.why for place, one in past.silent.items()}
    suspected: set[Place] = set()
    unserved: set[Place] = set()
    for attempt in over:
        place = attempt.place
        answers[place] += attempt.answers
        why[place] = attempt.why or f"it was killed on {attempt.node or 'its node'}"
        if attempt.fault == "server":
            unserved.add(place)
        if not attempt.ended or attempt.fault == "item":
            # What it ran then counts as killing jobs.
            suspected |= {place} if attempt.started else set()
    found: dict[tuple[int, int | None], _Tries] = defaultdict(_Tries)
    for array in past.arrays[past.since :]:
        for number, element in enumerate(array.elements):
            place = (array.number, number)
            if place in past.live:
                continue
            key = (element.shard, element.items[0] if element.alone and element.items else None)
            if answers[place]:
                found[key] = _Tries()
            elif place not in suspected:
                found[key].count += 1
                found[key].why = why.get(place, "Slurm does not know it any more")
                found[key].reason = "endpoint-failed" if place in unserved else "killed"
    return found


def bad_nodes(past: Past, over: Sequence[Attempt]) -> tuple[str, ...]:
    """Return the nodes on which too many jobs failed by no fault of Slurm's."""
    killed: dict[str, set[int]] = defaultdict(set)
    blamed: dict[str, Counter[int]] = defaultdict(Counter)
    for attempt in over:
        if not attempt.ended or attempt.fault == "server":
            # By an item, by what serves models, or by the node: jobs of several shards tell.
            killed[attempt.node].add(attempt.shard)
        elif attempt.fault == "node":
            blamed[attempt.node][attempt.shard] += 1
    for (array, element), silent in past.silent.items():
        blamed[silent.node][past.arrays[array].elements[element].shard] += 1
    return tuple(
        sorted(
            node
            for node in {*killed, *blamed} - {""}
            if len(killed[node] | blamed[node].keys()) >= NODE_FAILURES
            or max(blamed[node].values(), default=0) >= SAME_FAILURES
        )
    )
