"""adversary: does any script of the battery get paid for solving nothing?

Two trials come first, in the same settings: of the reference solution, since the 0 of a verifier that never pays shows
nothing, and of doing nothing, since of a verifier that always pays neither does a 1.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pytest_otval.attacks import names
from pytest_otval.attacks.battery import Attack, battery
from pytest_otval.attacks.union import agent_of, applied, bisect, unions
from pytest_otval.core import Conclusion, Finding, Severity, StageResult, Verdict
from pytest_otval.stages.isolation import AUTO, at_found
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import Question
from pytest_otval.stages.trials import evidence_of, noop, oracle, trial_stage
from pytest_otval.task.dataset import Accepted
from pytest_otval.trial.outcome import Scope, step_folder

_KEPT = ("image", "scope", "isolation")
_SHOWN = 5


def answer(machine: Machine, question: Question) -> StageResult:
    """Try the battery; a score above ``noop_max`` is expected of none. Raises Conclusion."""
    tried = _Tried(machine, question)
    stopped = tried.controls()
    if stopped is not None:
        return stopped
    accepted = question.settings.accepted
    chosen = _chosen(machine)
    for attack in chosen:
        if attack.id in accepted:
            tried.alone(attack)
    for group in unions(attack for attack in chosen if attack.id not in accepted).values():
        tried.group(group)
    return tried.answer(chosen)


def _chosen(machine: Machine) -> list[Attack]:
    wanted = machine.settings.verdict.attacks
    return [attack for attack in battery().values() if not wanted or attack.id in wanted]


class _Tried:
    """The trials of one task, and what they came to."""

    def __init__(self, machine: Machine, question: Question) -> None:
        self._machine = machine
        self._question = question
        self._modules = names.modules(question.task.steps)
        self._paths = names.paths(question.task.steps)
        self._scope: Scope = "phase"
        self._certain = True
        """Whether the reference solution is paid."""
        self._cells: dict[str, str] = {}
        self._noted: dict[tuple[str, ...], dict[str, str]] = {}
        """The cells by trial."""
        self._together: list[str] = []
        """Attacks that are paid beside each other only."""
        self._logs: dict[tuple[str, ...], str] = {}
        """Of trials that were paid, by the attacks in them."""
        self._idle = ""
        """The reason class of doing nothing."""
        self._facts: dict[str, Any] = {}
        self._trials: list[Any] = []
        self._seconds: dict[str, float] = defaultdict(float)

    def controls(self) -> StageResult | None:
        """Run the reference solution and nothing; return the answer where attacks would show nothing."""
        solved: StageResult | None
        try:
            solved = self._add(oracle(self._machine, self._at("oracle")))
        except Conclusion as conclusion:
            if conclusion.reason != "no-solution":
                raise
            self._certain, solved = False, None
        else:
            self._scope = solved.facts["scope"]
            if solved.verdict is not Verdict.PASS:
                return self._unasked(
                    solved.reason, f"the reference solution is not paid: {solved.headline}", solved.log
                )
        if self._machine.settings.verdict.isolation == AUTO:
            self._question = at_found(self._question, solved)
        idle = self._add(noop(self._machine, self._at("noop")))
        self._idle = idle.reason
        if self._paid(idle):
            return self._unasked("wrong-reward", f"doing nothing is paid: {idle.headline}", idle.log)
        return None

    def alone(self, attack: Attack) -> None:
        """Try one attack."""
        if "modules" in attack.needs and not self._modules:
            self._cells[attack.id] = "not-applied"
        else:
            self._hits([attack])

    def group(self, group: Sequence[Attack]) -> None:
        """Try attacks together, and fewer of them where one of them got through."""
        if len(group) == 1:
            self.alone(group[0])
        elif self._hits(group):
            for part in bisect(group, self._hits):
                together = self._noted[tuple(attack.id for attack in part)]
                if len(part) > 1 and "paid" in together.values():
                    # Trials of its halves noted something else since.
                    self._cells |= together
                    self._together += [id for id, cell in together.items() if cell == "paid"]

    def _hits(self, group: Sequence[Attack]) -> bool:
        """Run a trial and note of each attack what became of it; return whether fewer have to be tried."""
        name = f"attack-{group[0].id}" if len(group) == 1 else f"attack-union-{len(self._trials)}"
        agent = agent_of(name, group, self._modules, self._paths)
        question = self._at(name)
        result = self._add(trial_stage(self._machine, question, agent, self._scope))
        evidence = evidence_of(self._machine, question, self._scope)
        ran = applied(step_folder(evidence, step.name) for step in self._question.task.steps)
        state = self._state(result)
        if state == "paid":
            self._logs[tuple(attack.id for attack in group)] = f"{name}: score {result.facts['score']}\n{result.log}"
        # What broke off and was paid was paid: nothing else was done.
        all_ran = state == "paid" and not ran
        noted = {attack.id: state if all_ran or attack.id in ran else "not-applied" for attack in group}
        self._noted[tuple(noted)] = noted
        self._cells |= noted
        # A verifier that one of them kept from its usual end says nothing of the others.
        return state == "paid" or result.reason != self._idle

    def _state(self, result: StageResult) -> str:
        if self._paid(result):
            return "paid"
        if result.reason == "tampered":
            return "tampered"
        return "stopped" if self._certain else "applied"

    def _paid(self, result: StageResult) -> bool:
        """Whether a trial scored above the threshold; at isolation ``none`` as Harbor reads rewards."""
        harbors = self._machine.settings.verdict.rules == "harbor"
        if harbors or result.facts["isolation"] == "none":
            return not result.facts["harbor"]["error"] and not result.facts["harbor"]["pass"]
        return result.reason == "wrong-reward"

    def _at(self, name: str) -> Question:
        return replace(self._question, evidence=self._question.evidence / name)

    def _add(self, result: StageResult) -> StageResult:
        """Take a trial's facts. Raises Conclusion where it says nothing about the task."""
        if result.verdict not in (Verdict.PASS, Verdict.FAIL):
            raise Conclusion(result.reason, result.headline, result.log)
        self._facts |= {name: result.facts[name] for name in _KEPT}
        self._trials += result.facts["trials"]
        for phase, seconds in result.facts["seconds"].items():
            self._seconds[phase] += seconds
        return result

    def _unasked(self, reason: str, headline: str, log: str) -> StageResult:
        cells = {attack.id: "not-applied" for attack in _chosen(self._machine)}
        return StageResult(reason, f"no attack was tried, {headline}", log, self._all_facts(cells, []))

    def answer(self, chosen: Iterable[Attack]) -> StageResult:
        """Return what all attacks come to."""
        accepted = self._question.settings.accepted
        cells = {attack.id: self._cells[attack.id] for attack in chosen}
        weak = [attack for attack in chosen if attack.remedy and cells[attack.id] == "paid"]
        findings = [_weakness(attack, accepted.get(attack.id)) for attack in weak]
        cells |= {name: "accepted" for name, cell in cells.items() if cell == "paid" and name in accepted}
        facts = self._all_facts(cells, findings)
        if self._machine.settings.verdict.severity is Severity.ERROR:
            failing = [name for name, cell in cells.items() if cell == "paid" and not battery()[name].remedy]
        else:
            failing = [name for name, cell in cells.items() if cell == "paid"]
        if set(cells.values()) == {"not-applied"}:
            return StageResult("no-attack", "", "", facts)
        if not failing:
            return StageResult("expected", _told(cells), "", facts)
        more = f" and {len(failing) - _SHOWN} more" if len(failing) > _SHOWN else ""
        headline = f"paid for nothing: {', '.join(failing[:_SHOWN])}{more} ({_told(cells)})"
        if self._together:
            headline += f"; only together: {', '.join(self._together)}"
        groups = [group for group in self._logs if not set(group).isdisjoint(failing)]
        return StageResult("attack-paid", headline, self._logs[min(groups, key=len)], facts)

    def _all_facts(self, cells: dict[str, str], findings: Iterable[Finding]) -> dict[str, Any]:
        return {
            **self._facts,
            "attacks": cells,
            "checks": [finding.as_dict() for finding in findings],
            "trials": self._trials,
            "seconds": {phase: round(seconds, 4) for phase, seconds in self._seconds.items()},
        }


def _told(cells: dict[str, str]) -> str:
    return ", ".join(f"{count} {cell}" for cell, count in sorted(Counter(cells.values()).items()))


def _weakness(attack: Attack, accepted: Accepted | None) -> Finding:
    allowed = (accepted.reason, f"dataset.toml ({accepted.owner} until {accepted.expires})") if accepted else ("", "")
    message = f"{attack.id} is paid: {attack.shows}"
    return Finding("weak-in-process", Severity.WARNING, message, "tests/test.sh", None, attack.remedy, *allowed)
