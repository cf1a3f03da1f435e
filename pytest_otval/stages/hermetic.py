"""hermetic: does the answer depend on the network, and does anything write where nothing should?

Three trials of their own, which are watched: of the reference solution with the public network and without any, and of
doing nothing. See docs/hermetic.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pytest_otval.core import Conclusion, Finding, StageResult, Verdict, printable
from pytest_otval.images.lower import Lower, path_parts
from pytest_otval.sandbox.base import Phase
from pytest_otval.sandbox.traffic import Heard
from pytest_otval.stages.hermetic_findings import findings
from pytest_otval.stages.isolation import AUTO, at_found
from pytest_otval.stages.keep import Proposal, proposal
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import Question, agent_image, config_of
from pytest_otval.stages.static import judged
from pytest_otval.stages.trials import noop, oracle
from pytest_otval.task.model import NetworkMode
from pytest_otval.task.network import with_network
from pytest_otval.task.packed.unpack import DamagedError, Kind
from pytest_otval.trial.changed import Change
from pytest_otval.trial.layer import Bench
from pytest_otval.trial.watch import Seen, WatchingSandbox

_KEPT = ("image", "scope", "isolation", "runtimes")
MAX_LISTED = 200
"""Paths of a kind that the ledger lists."""
_TEMPORARY = ("/tmp/", "/var/tmp/")
_NAMES = {NetworkMode.PUBLIC: "with-network", NetworkMode.NO_NETWORK: "without-network"}


@dataclass(frozen=True, slots=True)
class Watched:
    """A trial, and what was seen of it."""

    result: StageResult
    seen: tuple[Seen, ...]

    def of(self, phase: Phase) -> list[Seen]:
        """Return what was seen of a phase, of each step one."""
        return [one for one in self.seen if one.phase == phase]

    def changes(self, phase: Phase) -> list[Change]:
        """Return what a phase changed."""
        return [change for one in self.of(phase) for change in one.changes.found]


def answer(machine: Machine, question: Question) -> StageResult:
    """Run the three trials and compare. Raises Conclusion where they cannot be run."""
    declared = _declared(machine, question)
    other = NetworkMode.PUBLIC if declared is NetworkMode.NO_NETWORK else NetworkMode.NO_NETWORK
    trials = _Trials(machine, question, declared)
    trials.find_level()
    solved = {mode: trials.run(oracle, mode, _NAMES[mode]) for mode in (declared, other)}
    first, second = solved[declared].result, solved[other].result
    if Verdict.PASS not in (first.verdict, second.verdict):
        words = f"the reference solution is not paid, with the network or without: {first.headline}"
        return StageResult(first.reason, words, first.log, trials.facts())
    idle = trials.run(noop, declared, "noop")
    keep = _keep(machine, question, solved[declared], idle)
    with_network, without = solved[NetworkMode.PUBLIC], solved[NetworkMode.NO_NETWORK]
    facts = {
        "declared": str(declared),
        "rewards": {_NAMES[mode]: _reward(one.result) for mode, one in solved.items()},
        "network": {phase: _heard(with_network.of(phase)) for phase in ("agent", "verifier")},
        "verifier_wrote": _listed(_outside(solved[declared].changes("verifier")), solved[declared].of("verifier")),
        "noop_changed": _listed(_outside(idle.changes("agent")), idle.of("agent")),
        "keep": list(keep.entries),
        "keep_more": keep.more,
    }
    found = findings(question.task, facts, with_network.result, without.result)
    return _judged(machine, found, facts, trials)


def _judged(machine: Machine, found: list[Finding], facts: dict[str, Any], trials: _Trials) -> StageResult:
    severity = machine.settings.verdict.severity
    return judged(found, severity, "not-hermetic", **trials.facts(), hermetic=facts)


def _declared(machine: Machine, question: Question) -> NetworkMode:
    """Return the network that the task's phases have: the public one where any of them has it. Raises Conclusion."""
    config_of(question.task)
    modes = {mode for step in question.task.steps for mode in (step.agent_network, step.verifier_network)}
    if NetworkMode.ALLOWLIST in modes:
        raise Conclusion("allowlist", "network_mode = 'allowlist' cannot be enforced here")
    if not machine.allow_public:
        words = "a trial with the public network is compared with one without, and this run has none"
        raise Conclusion("needs-network", words)
    return NetworkMode.PUBLIC if NetworkMode.PUBLIC in modes else NetworkMode.NO_NETWORK


class _Trials:
    """Runs watched trials of a task, and adds up what the ledger says of them."""

    def __init__(self, machine: Machine, question: Question, declared: NetworkMode) -> None:
        self._machine = machine
        self._question = question
        self._declared = declared
        self._facts: dict[str, Any] = {}
        self._trials: list[dict[str, Any]] = []
        self._seconds: dict[str, float] = defaultdict(float)

    def find_level(self) -> None:
        """At isolation ``auto`` let what follows run at the strongest level that works, which oracle finds."""
        if self._machine.settings.verdict.isolation == AUTO:
            found = self._add("level", oracle(self._machine, self._at("level", self._declared)))
            self._question = at_found(self._question, found)

    def run(
        self,
        stage: Callable[[Machine, Question, Callable[[], Bench]], StageResult],
        mode: NetworkMode,
        name: str,
    ) -> Watched:
        """Run a trial with a network. Raises Conclusion where it says nothing about the task."""
        sandboxes: list[WatchingSandbox] = []

        def bench() -> Bench:
            usual = self._machine.bench()
            sandboxes.append(WatchingSandbox(usual.sandbox))
            return replace(usual, sandbox=sandboxes[-1])

        result = self._add(name, stage(self._machine, self._at(name, mode), bench))
        # Where a second trial does not help either, the answer is that of the first.
        told = sandboxes[-1 if result.verdict is Verdict.PASS else 0]
        return Watched(result, tuple(told.seen))

    def _at(self, name: str, mode: NetworkMode) -> Question:
        task = self._question.task
        if mode is not self._declared:
            task = with_network(task, mode)
        # Else as it is: of its phases some may have the network and others none.
        return replace(self._question, task=task, evidence=self._question.evidence / name)

    def _add(self, name: str, result: StageResult) -> StageResult:
        """Take what the ledger says of a trial. Raises Conclusion where it says nothing about the task."""
        if result.verdict not in (Verdict.PASS, Verdict.FAIL):
            raise Conclusion(result.reason, f"{name}: {result.headline}", result.log)
        self._facts = self._facts or {fact: result.facts[fact] for fact in _KEPT}
        for trial in result.facts["trials"]:
            self._trials.append({**trial, "headline": "; ".join(filter(None, (name, trial["headline"])))})
        for phase, seconds in result.facts["seconds"].items():
            self._seconds[phase] += seconds
        return result

    def facts(self) -> dict[str, Any]:
        """Return what the ledger says of all trials."""
        seconds = {phase: round(value, 4) for phase, value in self._seconds.items()}
        return {**self._facts, "trials": self._trials, "seconds": seconds}


def _reward(result: StageResult) -> dict[str, Any]:
    return {"class": result.reason, "score": result.facts["score"]}


def _heard(seen: Iterable[Seen]) -> dict[str, Any]:
    """Return what a phase asked of the network, of all steps together; ``unheard`` where that is not known."""
    all_heard = [one.heard for one in seen]
    unheard = next((heard.unheard for heard in all_heard if heard.unheard), "")
    if not all_heard:
        unheard = "it did not come to this phase"
    return {
        "names": _united(all_heard, lambda heard: heard.names),
        "addresses": _united(all_heard, lambda heard: heard.addresses),
        "more": sum(heard.more for heard in all_heard),
        "unheard": unheard,
    }


def _united(all_heard: Iterable[Heard], part: Callable[[Heard], Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(one for heard in all_heard for one in part(heard)))


def _outside(changes: Iterable[Change]) -> list[Change]:
    """Leave out temporary files and what Python compiled by the way."""
    return [
        change
        for change in changes
        if not f"{change.path}/".startswith(_TEMPORARY) and "/__pycache__/" not in f"{change.path}/"
    ]


def _listed(changes: list[Change], seen: Iterable[Seen]) -> dict[str, Any]:
    paths = [f"{printable(change.path)}{' (removed)' * (change.kind == 'removed')}" for change in changes]
    return {
        "paths": paths[:MAX_LISTED],
        "count": len(paths),
        "whole": all(one.changes.whole for one in seen),
    }


def _keep(machine: Machine, question: Question, solved: Watched, idle: Watched) -> Proposal:
    """Return what ``keep`` would have to name for the solution's work in folders of the system."""
    untouched = {change.path for change in idle.changes("agent")}
    changes = [change for change in solved.changes("agent") if change.path not in untouched]
    files = machine.images.ensure(agent_image(question.task)).files
    try:
        with Lower(files) as image:
            return proposal(changes, files, partial(_lacks, image))
    except (OSError, DamagedError):
        # Of an image that is not to be read, a SIF file for one, no folder counts as new.
        return proposal(changes, (), lambda path: False)


def _lacks(image: Lower, path: str) -> bool:
    """Whether an image has no folder at a path."""
    found = image.follow(path_parts(path))
    return found is None or found[0] != path_parts(path) or found[1].inode.kind is not Kind.FOLDER
