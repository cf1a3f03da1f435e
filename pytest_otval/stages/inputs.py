"""What the stages of a task need and this machine does not have: told before a run that fetches nothing."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from pytest_otval.core import REASONS, Conclusion, Verdict, printable
from pytest_otval.runtimes.mount import Supply, agent_supply, verifier_supply
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import image_requests, require_runnable
from pytest_otval.task.load import Task
from pytest_otval.workspace import default_cluster

Kind = Literal["dataset", "image", "runtime"]


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that is not here."""

    kind: Kind
    name: str
    """What it is, printable; the same for two tasks that need the same."""
    command: str
    """What fetches or makes it, where there is a network."""


def missing_inputs(machine: Machine, task: Task, item: str) -> Iterator[Missing]:
    """Yield what a trial of a task needs and this machine has not.

    ``item`` names the task to pytest: its node id without a stage. A task that no sandbox here can run needs nothing,
    nor does one by whose own fault there is no image: its stages say so without any.
    """
    try:
        require_runnable(task)
    except Conclusion:
        return
    for look in _KINDS:
        try:
            yield from look(machine, task, item)
        except Conclusion as conclusion:
            if REASONS[conclusion.reason].verdict is Verdict.ERROR:
                raise


def _images(machine: Machine, task: Task, item: str) -> Iterator[Missing]:
    command = f"pytest {shlex.quote(f'{item}::build')}{_cluster(machine, '--otval-cluster')}"
    if machine.settings.verdict.force_build:
        command += " --otval-force-build"
    for request in image_requests(task):
        try:
            plan = machine.images.plan(request)
            lost = plan.needs_uid_mapping and not machine.sandbox.maps_uids
            if not lost and not machine.images.has(request):
                yield Missing("image", f"{plan.key[:12]} over {printable(plan.base.name)}", command)
        except Conclusion as conclusion:
            if conclusion.reason != "base-unavailable":
                raise
            yield Missing("image", printable(conclusion.headline), command)


def _runtimes(machine: Machine, task: Task, item: str) -> Iterator[Missing]:
    supplies = [agent_supply(machine.runtimes, task)]
    supplies += [verifier_supply(machine.runtimes, step) for step in task.steps]
    for supply in supplies:
        if supply is not None and supply.runtime is None:
            yield Missing("runtime", printable(f"{supply.name}: {supply.why}"), _making(machine, supply, task))


def _making(machine: Machine, supply: Supply, task: Task) -> str:
    build = f"python -m pytest_otval runtime build {shlex.quote(str(task.path))}{_cluster(machine, '--cluster')}"
    if supply.reference is None:
        return build
    return f"python -m pytest_otval runtime download REPOSITORY {supply.reference.id}, or {build}"


def _cluster(machine: Machine, option: str) -> str:
    """Return what lets a command use the run's cluster profile, where it would not by itself."""
    name = machine.settings.run.cluster
    return "" if name == default_cluster() else f" {option}={shlex.quote(name)}"


_KINDS: tuple[Callable[[Machine, Task, str], Iterator[Missing]], ...] = (_images, _runtimes)
