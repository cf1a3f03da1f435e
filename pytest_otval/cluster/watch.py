"""Looks at a submitted run: what was answered, what its jobs do, and what has to be submitted again.

All state is in the run folder. Nobody has to watch: jobs run to their ends by themselves, and whoever looks next
submits what is missing then.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_otval.cluster import states, submission
from pytest_otval.cluster.job_pytest import CONTRACT
from pytest_otval.cluster.journal import Journal, watcher_name
from pytest_otval.cluster.recovery import GivenUp, Past, Place, Silent, recover
from pytest_otval.cluster.request import read_request
from pytest_otval.cluster.shards import read_plan
from pytest_otval.cluster.spending import budget_of, over_budget
from pytest_otval.cluster.states import JobState, Phase, Slurm, SlurmUnreachableError
from pytest_otval.cluster.submission import LOGS, Array, arrays_of, resumed_at
from pytest_otval.contract.file import read_contract
from pytest_otval.core import REASONS, OtvalUsageError, stage_of
from pytest_otval.images.locks import locked_now
from pytest_otval.ledger import Ledger, Line, read_run

CANCELLED = "cancelled"
"""The file of a run folder that says that nothing is to be submitted again, and why."""

LOCK = "watch.lock"
GRACE_SECONDS = 60.0
"""A job that Slurm does not know is lost when it was not seen for so long."""
SETTLE_SECONDS = 5.0
"""What a job wrote last may reach other machines that much later than Slurm's word that it is over."""


@dataclass(frozen=True, slots=True)
class View:
    """How a run stands."""

    items: int
    done: int
    shards: Counter[str]
    """By what they do: pending, running, over."""
    reasons: Counter[str]
    """Why jobs wait, as Slurm says it."""
    verdicts: Counter[str]
    nodes: Counter[str]
    """Jobs that run, by node."""
    trouble: str = ""
    """What keeps us from knowing, or from going on."""
    cancelled: str = ""
    """Why nothing is submitted any more."""

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.done >= self.items or bool(self.cancelled and not self.shards["pending"] + self.shards["running"])


def state_line(view: View) -> str:
    """Return how a run stands, in one line."""
    waits = f" ({', '.join(view.reasons)})" if view.reasons else ""
    where = f" on {', '.join(sorted(view.nodes))}" if view.nodes else ""
    shards = view.shards
    words = f"jobs {shards['pending']} pending{waits}, {shards['running']} running{where}, {shards['over']} over"
    words += f"; {view.done} of {view.items} items"
    if view.verdicts["error"]:
        words += f"; {view.verdicts['error']} errors of the machine"
    return words + (f"; {view.trouble}" if view.trouble else "") + (f"; {view.cancelled}" if view.cancelled else "")


class Watch:
    """Follows one run."""

    def __init__(self, run: Path, clock: Callable[[], float] = time.time) -> None:
        """Raises OtvalUsageError where the folder is no submitted run."""
        self.run = run
        self.request = read_request(run)
        self.ids = [item.id for item in read_contract(run / CONTRACT).items()]
        self._plan = read_plan(run)
        self._since = resumed_at(arrays_of(run))
        self._journal = Journal(run, self._since)
        self._slurm = Slurm(run.name)
        self._budget = budget_of(run, self.request.models)
        self._clock = clock
        self._verdicts: Counter[str] = Counter()
        self._seen: dict[Place, float] = {}
        self._over_since: dict[Place, float] = {}

    @property
    def files(self) -> int:
        """How many files its ledger has by now."""
        return self._journal.files

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the result lines that came since the last call, the first of each item."""
        for line in self._journal.read():
            self._verdicts[str(line["verdict"])] += 1
            yield line

    def look(self) -> View:
        """Ask Slurm, submit again what is missing, and return how the run stands; ``lines`` comes first.

        Raises OtvalUsageError where the jobs can never start.
        """
        arrays = arrays_of(self.run)
        try:
            known = self._slurm.states([array.number for array in arrays])
        except SlurmUnreachableError as error:
            return self._view(arrays, {}, set(), f"Slurm does not answer: {error}")
        live = self._live(arrays, known)
        if self._cancelled:
            trouble = self._cancel_again(arrays, known)
        elif self.over_budget():
            # Jobs that run learn of it and end what they are at.
            trouble = self._cancel_again(arrays, known, "pending")
        else:
            self._end_hopeless(known)
            trouble = self._recover(arrays, known, live)
        return self._view(arrays, known, live, trouble)

    def over_budget(self) -> str:
        """Return how the run's budget was spent; empty where more may be."""
        return over_budget(self._budget)

    def _cancel_again(self, arrays: list[Array], known: dict[Place, JobState], *only: Phase) -> str:
        """End what goes on of a cancelled run, as where Slurm did not answer before; return what went wrong.

        ``only``: what is in these phases.
        """
        phases = only or ("pending", "running")
        going = sorted({place[0] for place, state in known.items() if state.phase in phases})
        try:
            states.cancel(self.run.name, [array.number for array in arrays if array.number in going], only)
        except SlurmUnreachableError as error:
            return f"Slurm does not answer: {error}"
        return ""

    @property
    def _cancelled(self) -> str:
        try:
            return (self.run / CANCELLED).read_text().strip() or "cancelled"
        except OSError:
            return ""

    def _live(self, arrays: list[Array], known: dict[Place, JobState]) -> set[Place]:
        """Return the elements of which more may come."""
        now, live = self._clock(), set()
        for array in arrays:
            for number in range(len(array.elements)):
                place = (array.number, number)
                state = known.get(place)
                if state is None:
                    ended = any(one.ended for one in self._journal.attempts if one.place == place)
                    last = max(self._seen.get(place, 0.0), array.time)
                    alive = now - last < (SETTLE_SECONDS if ended else GRACE_SECONDS)
                elif state.phase == "over":
                    alive = now - self._over_since.setdefault(place, now) < SETTLE_SECONDS
                else:
                    self._seen[place], alive = now, True
                    self._over_since.pop(place, None)
                if alive:
                    live.add(place)
        return live

    def _end_hopeless(self, known: dict[Place, JobState]) -> None:
        for state in known.values():
            if state.hopeless:
                why = f"Slurm never starts the jobs of {self.run.name}: {state.hopeless}"
                cancel(self.run, why)
                raise OtvalUsageError(f"{why}; they were cancelled, ask for other cores, memory or time")
            if state.held_by_failure:
                states.cancel_job(state.job)

    def _recover(self, arrays: list[Array], known: dict[Place, JobState], live: set[Place]) -> str:
        """See to items that no live element is for; return what went wrong at that."""
        covered: set[int] = set()
        for place in live:
            element = arrays[place[0]].elements[place[1]]
            covered.update(self._plan[element.shard] if element.items is None else element.items)
        missing = [n for n, id in enumerate(self.ids) if n not in covered and id not in self._journal.done]
        if not missing:
            return ""
        past = Past(arrays, self._journal.attempts, live, self._silent(arrays, known, live), self._since)
        with locked_now(self.run / LOCK) as held:
            # Another process may see to it, or have done so since we looked.
            if not held or len(arrays_of(self.run)) != len(arrays):
                return ""
            plan = recover(past, missing, self.ids, self._plan)
            self._give_up(plan.given_up)
            if not plan.elements:
                return ""
            try:
                submission.submit(self.run, self.request, plan.elements, plan.exclude)
            except OtvalUsageError as error:
                return str(error)
        return ""

    def _silent(self, arrays: list[Array], known: dict[Place, JobState], live: set[Place]) -> dict[Place, Silent]:
        """Return the elements that are over and have not even begun a ledger, but said why."""
        began = {attempt.place for attempt in self._journal.attempts}
        found = {}
        for array in arrays[self._since :]:
            for number in range(len(array.elements)):
                place = (array.number, number)
                if place in live or place in began:
                    continue
                line = _last_line(self.run / LOGS / f"{array.job}_{number}_0_log.out")
                state = known.get(place)
                if line.startswith("otval:"):
                    found[place] = Silent(line, state.node if state else "")
                elif state is not None:
                    found[place] = Silent(f"Slurm says {state.state} {state.reason}")
        return found

    def _give_up(self, items: tuple[GivenUp, ...]) -> None:
        if not items:
            return
        facts = _facts(self.run)
        ledger = Ledger(self.run, watcher_name(self._since))
        for one in items:
            id = self.ids[one.item]
            ledger.write(
                Line(
                    kind="result",
                    id=id,
                    task_digest="",
                    stage=stage_of(id.rpartition("::")[2]),
                    attempt=0,
                    verdict=str(REASONS[one.reason].verdict),
                    reason=one.reason,
                    headline=one.headline,
                    settings_digest=str(facts.get("settings_digest", "")),
                    flavour=str(facts.get("flavour", "")),
                    network=str(facts.get("settings", {}).get("network", "")),
                )
            )
        ledger.close()

    def _view(self, arrays: list[Array], known: dict[Place, JobState], live: set[Place], trouble: str) -> View:
        shards, reasons, nodes = Counter[str](), Counter[str](), Counter[str]()
        for array in arrays:
            for number in range(len(array.elements)):
                place = (array.number, number)
                state = known.get(place)
                phase = state.phase if state else "pending"
                shards[phase if place in live and phase != "over" else "over"] += 1
                if state and phase == "pending" and state.reason not in ("", "None"):
                    reasons[state.reason] += 1
                if state and phase == "running" and state.node:
                    nodes[state.node] += 1
        done = len(self._journal.done & set(self.ids))
        ended = self._cancelled or self.over_budget()
        return View(len(self.ids), done, shards, reasons, self._verdicts, nodes, trouble, ended)


def give_up(run: Path, why: str) -> None:
    """Let nothing of a run be submitted again; who looks at it next ends its jobs. Raises OSError."""
    if not (run / CANCELLED).exists():
        (run / CANCELLED).write_text(f"{why}\n")


def cancel(run: Path, why: str = "cancelled") -> None:
    """Cancel all jobs of a run; nothing of it is submitted again. Raises SlurmUnreachableError, OtvalUsageError."""
    give_up(run, why)
    states.cancel(run.name, [array.number for array in arrays_of(run)])


def _last_line(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4096))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1][:300] if lines else ""


def _facts(run: Path) -> dict[str, Any]:
    try:
        return read_run(run)
    except (OSError, ValueError):
        return {}
