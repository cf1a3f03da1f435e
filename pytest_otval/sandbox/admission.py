"""Admission: what runs on a node at one time never asks for more than the node has.

All processes of a user on a node share one pool of cores, memory and GPUs, also those of several pytest runs. Who asks
gets a ticket; tickets are served in order, so a big task is not passed over for ever by small ones. Only one that
lacks nothing but GPUs lets those pass that want none. Attempts of models may share cores with each other.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.sandbox.base import Limits
from pytest_otval.sandbox.budget import Budget
from pytest_otval.sandbox.gpus import Gpu, node_gpus, require_gpus
from pytest_otval.sandbox.leftovers import start_ticks
from pytest_otval.sandbox.pool import Entry, Pool, State

_POLL = 0.05
"""Seconds between two looks at whether the pool has changed."""
_DEAD_HOLDERS = 1.0
"""Seconds between two looks at whether a holder has died, which changes no file."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a task, or the build of an image, asks for."""

    cpus: float = 1.0
    """Cores; a part of one counts as a whole one."""
    memory_mb: int = 0
    """MiB."""
    gpus: int = 0
    gpu_types: tuple[str, ...] = ()
    """Models of which any will do; none: all."""
    share: int = 1
    """How many that say so may hold a core together, since they seldom use it."""

    @classmethod
    def of(cls, limits: Sequence[Limits], share: int = 1) -> Need:
        """Return what containers with these limits need that run one after the other.

        What declares no cores counts as one core, since most such tasks are small, and what declares no memory as
        none, since nothing would bound it.
        """
        cpus = max(1.0 if one.cpus is None else one.cpus for one in limits)
        most = max(limits, key=lambda one: one.gpus)
        return cls(cpus, max(one.memory_mb or 0 for one in limits), most.gpus, tuple(most.gpu_types), share)


@dataclass(frozen=True, slots=True)
class Grant:
    """What was granted."""

    cores: frozenset[int]
    """Nobody else holds one of them, but for those who share."""
    gpus: tuple[Gpu, ...] = ()
    waited: float = 0.0
    """Seconds."""


class Admission:
    """The pool of this node, as one process asks it. Not for several threads."""

    def __init__(self, scratch: Path, budget: Budget, find_gpus: Callable[[], Sequence[Gpu]] = node_gpus) -> None:
        """``scratch`` is the user's folder on this node; each Slurm job has a pool, since each has its own part."""
        self.budget = budget
        self.waited = 0.0
        """Seconds that this process has waited for all its grants."""
        self._pool = Pool(scratch / f"admission-{os.environ.get('SLURM_JOB_ID', 'node')}.json")
        self._find_gpus = find_gpus
        self.held: Grant | None = None
        """What this process holds at present."""

    @contextmanager
    def grant(self, need: Need) -> Iterator[Grant]:
        """Wait until what is needed is free, and hold it in the block.

        A need larger than the node is cut to the node. A grant within a grant is the outer one: who holds something
        never waits. Raises Conclusion ``no-gpu``, or ``host-disk-full`` and ``no-start`` as the pool does.
        """
        if self.held is not None:
            yield self.held
            return
        gpus = require_gpus(self._find_gpus(), need.gpus, need.gpu_types) if need.gpus else ()
        began = time.monotonic()
        ticket = self._enter(need)
        try:
            granted = self._await(ticket, need, gpus)
            self.held = Grant(granted.cores, granted.gpus, time.monotonic() - began)
            self.waited += self.held.waited
            yield self.held
        finally:
            self.held = None
            # What cannot be written any more goes with this process.
            with suppress(Conclusion), self._pool.changed() as state:
                state.entries = [entry for entry in state.entries if entry.ticket != ticket]

    def _enter(self, need: Need) -> int:
        cores, memory, share = max(1, math.ceil(need.cpus)), need.memory_mb, need.share
        if cores > len(self.budget.cores) or memory > self.budget.memory_mb:
            # It may use up the node, so nothing else runs beside it.
            cores, memory, share = len(self.budget.cores), self.budget.memory_mb, 1
        me = os.getpid()
        with self._pool.changed() as state:
            entry = Entry(state.next_ticket, me, start_ticks(me), cores, memory, need.gpus, share)
            state.entries.append(entry)
            state.next_ticket += 1
        return entry.ticket

    def _await(self, ticket: int, need: Need, gpus: Sequence[Gpu]) -> Grant:
        while True:
            version, looked = self._pool.version(), time.monotonic()
            with self._pool.changed() as state:
                entry = state.entry(ticket)
                if entry is None:
                    raise Conclusion("internal", "the pool of this node lost a ticket")
                if self._is_next(state, entry) and self._take(state, entry, gpus):
                    cores = sorted(entry.held_cores)[: max(1, math.ceil(need.cpus))]
                    return Grant(frozenset(cores), tuple(gpu for gpu in gpus if gpu.minor in entry.held_gpus))
            while self._pool.version() == version and time.monotonic() < looked + _DEAD_HOLDERS:
                time.sleep(_POLL)

    def _is_next(self, state: State, entry: Entry) -> bool:
        """Whether nobody waits in front who could use what this one takes."""
        before = [other for other in state.entries if not other.granted and other.ticket < entry.ticket]
        return all(other.gpus and not entry.gpus and self._has_room(state, other) for other in before)

    def _has_room(self, state: State, entry: Entry) -> bool:
        """Whether cores and memory are free for an entry."""
        memory = sum(other.memory_mb for other in state.entries if other.granted)
        return len(self._free(state, entry)) >= entry.cores and memory + entry.memory_mb <= self.budget.memory_mb

    def _free(self, state: State, entry: Entry) -> list[int]:
        """Return the cores that an entry may get, those first that the fewest hold.

        None beyond the budget's number, where other processes have another affinity.
        """
        holders: dict[int, list[int]] = {core: [] for core in self.budget.cores}
        elsewhere = set()
        for other in state.entries:
            for core in other.held_cores:
                if core in holders:
                    holders[core].append(other.share)
                else:
                    elsewhere.add(core)
        free = [core for core, shares in holders.items() if len(shares) < min([entry.share, *shares])]
        return sorted(free, key=lambda core: len(holders[core]))[: max(0, len(free) - len(elsewhere))]

    def _take(self, state: State, entry: Entry, gpus: Sequence[Gpu]) -> bool:
        """Grant what an entry asks for, if it is free."""
        taken = {minor for other in state.entries for minor in other.held_gpus}
        devices = [gpu.minor for gpu in gpus if gpu.minor not in taken][: entry.gpus]
        if not self._has_room(state, entry) or len(devices) < entry.gpus:
            return False
        entry.granted, entry.held_gpus = True, devices
        entry.held_cores = self._free(state, entry)[: entry.cores]
        return True
