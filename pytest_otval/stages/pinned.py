"""What the answer of a stage depends on besides the task's files and the settings of the run.

A contract fixes it, and an answer of an earlier run is taken only where it is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache

from pytest_otval.checks.version import package_version
from pytest_otval.core import REASONS, Conclusion, Verdict
from pytest_otval.images.steps import BuildPlan
from pytest_otval.runtimes.mount import Supply, agent_supply, verifier_supply
from pytest_otval.runtimes.record import Reference
from pytest_otval.stages.attempted import digest_of
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import Known, config_of, image_requests, require_owners, require_runnable
from pytest_otval.stages.spec import JUDGE_MARKS, JUDGE_TRACE, KIND_OF, OWN_MARKS, Stage
from pytest_otval.task.dataset import DatasetSettings
from pytest_otval.task.load import Task

JUDGES = (
    *("core.py", "task", "checks", "sandbox", "images", "leaks", "runtimes", "trial", "attacks", "stages"),
    *("data/toolbox", "data/test_order"),
)
"""What of our package answers of stages with containers come from."""

OF_THE_TASK = frozenset(("compose", "windows", "no-solution", "unsupported-instruction", "needs-uid-mapping"))
"""Classes of n/a that the task's files and the mapping of uids decide, whatever the machine has else."""


@dataclass(frozen=True, slots=True)
class PinnedImage:
    """An image by what it is made from."""

    key: str
    base: str
    content: str
    """Its content digest; empty where it is not in the store."""


def pinned_images(machine: Machine, task: Task) -> tuple[PinnedImage, ...]:
    """Return the images of a task, the agent's first; nothing is made.

    None for a task that no sandbox can run, or whose own fault it is that there is no image; that this machine has no
    GPU does not matter. Raises Conclusion of a class that is an error, as where no registry answers.
    """
    plans = _plans(machine, task)
    contents = [machine.images.content(request) for request in image_requests(task)] if plans else []
    return tuple(PinnedImage(plan.key, plan.base.name, content) for plan, content in zip(plans, contents, strict=True))


def _plans(machine: Machine, task: Task) -> list[BuildPlan]:
    try:
        require_runnable(task, here=False)
        return [machine.images.plan(request) for request in image_requests(task)]
    except Conclusion as conclusion:
        if REASONS[conclusion.reason].verdict is Verdict.ERROR:
            raise
        return []


def pinned_runtimes(machine: Machine, task: Task) -> tuple[Reference, ...]:
    """Return the runtimes that a task's files name."""
    return tuple(supply.reference for supply in _supplies(machine, task) if supply.reference is not None)


def _supplies(machine: Machine, task: Task) -> Iterator[Supply]:
    try:
        for supply in (
            agent_supply(machine.runtimes, task),
            *(verifier_supply(machine.runtimes, step) for step in task.steps),
        ):
            if supply is not None:
                yield supply
    except Conclusion:
        # Its stages tell what is wrong with the task.
        return


def inapplicable(machine: Machine, task: Task, stage: Stage) -> str:
    """Return the class of a question that does not apply to a task, as far as its files tell; else an empty text."""
    if not stage.containers:
        return ""
    try:
        require_runnable(task, here=False)
        plans = [machine.images.plan(request) for request in image_requests(task)]
        mapping = next(filter(None, (plan.needs_uid_mapping for plan in plans)), None)
        if mapping and not machine.sandbox.maps_uids:
            return "needs-uid-mapping"
        if stage.name != "build":
            if stage.name in ("oracle", "hermetic"):
                for step in task.steps:
                    machine.agent("oracle").check(task, step)
            require_owners(task, plans[0].config.user, machine.sandbox)
    except Conclusion as conclusion:
        return conclusion.reason if conclusion.reason in OF_THE_TASK else ""
    return ""


def needs_of(machine: Machine, task: Task) -> str:
    """Return a digest of what a task's containers are made of, its images and runtimes, the same for all its stages.

    Empty where it cannot be told: no registry answers, or the task asks for variables of the host.
    """
    try:
        if "${" in config_of(task).model_dump_json():
            return ""
        images = [plan.key for plan in _plans(machine, task)]
    except Conclusion:
        return ""
    return _digest(images, [str(supply) for supply in _supplies(machine, task)])


def depends_on(machine: Machine, stage: Stage, known: Known, needs: Callable[[], str]) -> str:
    """Return a digest of all that an answer depends on besides task, stage and verdict settings, as 16 hex digits.

    That is: images, runtimes, settings of the dataset, and the code that decides. Empty where it
    cannot be told, as for a stage of another plugin. ``needs`` tells of the task what ``needs_of`` does, and is called
    for stages with containers, and for those of a judge that may run some.
    """
    if stage.mark not in OWN_MARKS:
        return ""
    settings = known.settings
    if stage.mark in JUDGE_MARKS:
        return _digest(_version(), *_of_judge(machine, stage, known, needs))
    if not stage.containers:
        version = machine.checks_version
        return _digest(version, settings.oracle, repr(settings.allow), settings.harbor_lint) if version else ""
    found = needs()
    of_model = [_of_model(machine, stage.model)] if stage.model else []
    return _digest(_version(), found, _of_dataset(settings, known.task, stage), *of_model) if found else ""


def _of_model(machine: Machine, model: str) -> list[object]:
    """Return what an attempt depends on besides its task; where a model is asked and what that costs are no part."""
    section = machine.model_section(model)
    about = {**section.of_answers, "context": section.context}
    return [package_version(("llm",)), machine.model_agent.version, about]


def _of_judge(machine: Machine, stage: Stage, known: Known, needs: Callable[[], str]) -> list[object]:
    """Return who reviews what by what, and where claims are put to the test all that trials depend on."""
    kind = KIND_OF[stage.mark]
    run, rubric, calibration = machine.settings.run, machine.rubric(kind), machine.calibration(kind)
    section = machine.model_section(run.judge)
    reviewed = machine.attempts.of(known.dataset, known.task, known.digest) if stage.mark == JUDGE_TRACE.mark else []
    tests = bool(machine.settings.verdict.flavour) and any(one.execution for one in rubric.criteria)
    of_trials = [needs(), _of_dataset(known.settings, known.task, stage)] if tests else []
    advisory = sorted(calibration.advisory) if calibration else None
    about = [section.of_answers, section.context, rubric.digest, advisory]
    who = [package_version(("llm", "judge")), run.judge, run.votes, *about]
    return [*who, digest_of(reviewed), *of_trials]


@cache
def _version() -> str:
    return package_version(JUDGES)


def _of_dataset(settings: DatasetSettings, task: str, stage: Stage) -> dict[str, object]:
    """Return the settings that may change the answer about one task."""
    names = ("reward_key", "oracle_min", "noop_max", "reward_range", "isolation")
    found: dict[str, object] = {name: getattr(settings, name) for name in names}
    found["level"] = settings.levels.get(task)
    if stage.name == "build":
        found.update(oracle=settings.oracle, allow=repr(settings.allow))
    if stage.name == "adversary":
        found["accepted"] = {name: asdict(one) for name, one in settings.accepted.items()}
    return found


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]
