"""What the stages of a task need and this machine does not have: told before a run that fetches nothing."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """A task of which something is to be run."""

    task: Task
    item: str
    """What names it to pytest: its node id without a stage."""
    tried: bool = True
    """Whether there are to be trials of it, and not only its image."""
    packed: Path | None = None
    """The dataset of a packed one, whose folder goes when it was looked at."""


def missing_inputs(machine: Machine, wanted: Wanted) -> Iterator[Missing]:
    """Yield what a task needs and this machine has not.

    A task that no sandbox here can run needs nothing, nor does one by whose own fault there is no image: its stages say
    so without any. Raises Conclusion of a class that is an error.
    """
    try:
        require_runnable(wanted.task)
    except Conclusion:
        return
    for look in (_images, _runtimes) if wanted.tried else (_images,):
        try:
            yield from look(machine, wanted)
        except Conclusion as conclusion:
            if REASONS[conclusion.reason].verdict is Verdict.ERROR:
                raise


def _images(machine: Machine, wanted: Wanted) -> Iterator[Missing]:
    command = f"pytest {shlex.quote(f'{wanted.item}::build')}{_cluster(machine, '--otval-cluster')}"
    if machine.settings.verdict.force_build:
        command += " --otval-force-build"
    for request in image_requests(wanted.task):
        try:
            plan = machine.images.plan(request)
            lost = plan.needs_uid_mapping and not machine.sandbox.maps_uids
            if not lost and not machine.images.has(request):
                yield Missing("image", f"{plan.key[:12]} over {printable(plan.base.name)}", command)
        except Conclusion as conclusion:
            if conclusion.reason != "base-unavailable":
                raise
            yield Missing("image", printable(conclusion.headline), command)


def _runtimes(machine: Machine, wanted: Wanted) -> Iterator[Missing]:
    supplies = [agent_supply(machine.runtimes, wanted.task)]
    supplies += [verifier_supply(machine.runtimes, step) for step in wanted.task.steps]
    for supply in supplies:
        if supply is not None and supply.runtime is None:
            yield Missing("runtime", printable(f"{supply.name}: {supply.why}"), _making(machine, supply, wanted))


def _making(machine: Machine, supply: Supply, wanted: Wanted) -> str:
    build, cluster = "python -m pytest_otval runtime build", _cluster(machine, "--cluster")
    if wanted.packed is None:
        build += f" {shlex.quote(str(wanted.task.path))}{cluster}"
    else:
        unpack = f"python -m pytest_otval dataset unpack {shlex.quote(str(wanted.packed))} FOLDER"
        build = f"{unpack}, {build} FOLDER/tasks/{wanted.task.name}{cluster}, and pack it again"
    if supply.reference is None:
        return build
    return f"python -m pytest_otval runtime download REPOSITORY {supply.reference.id}, or {build}"


def _cluster(machine: Machine, option: str) -> str:
    """Return what lets a command use the run's cluster profile, where it would not by itself."""
    name = machine.settings.run.cluster
    return "" if name == default_cluster() else f" {option}={shlex.quote(name)}"
