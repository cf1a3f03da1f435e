"""``--otval-save-runtimes``: the runtimes that a task's scripts ask for are made, cached, and named in the task."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.images.model import Image, ImageRequest
from pytest_otval.runtimes.build import Installation
from pytest_otval.runtimes.named import NotNamedError, name_in_dataset
from pytest_otval.runtimes.recipe import SCRIPT, Recipe, find_recipe, runtime_id
from pytest_otval.runtimes.record import ROOT, Reference, Runtime, name_of, read_reference, write_reference
from pytest_otval.runtimes.script import Asking, asking_of_agent, asking_of_verifier
from pytest_otval.runtimes.store import UnusableError
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import agent_image, config_of, require_runnable, verifier_image
from pytest_otval.task.dataset import DATASET_TOML, Dataset
from pytest_otval.task.load import Task
from pytest_otval.task.model import EnvironmentConfig
from pytest_otval.trial.environment import resolve
from pytest_otval.trial.layer import limits_of

_SEEN_AT = "/.otval-recipe"
"""Where the container sees a recipe's folder."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A runtime that a task names from now on."""

    file: Path
    runtime: Runtime


@dataclass(frozen=True, slots=True)
class _Wanted:
    asking: Asking
    request: ImageRequest
    environment: EnvironmentConfig
    env: Mapping[str, str]
    """Of task.toml, unresolved."""
    seconds: float


def save_runtimes(
    machine: Machine,
    task: Task,
    rootdir: Path | None = None,
    in_place: bool = True,
    anew: bool = False,
    log: Path | None = None,
) -> list[Saved]:
    """Make what the scripts of a task ask for and the cache does not have; return what the task names anew.

    A name that a recipe has, in ``rootdir`` or ours, is made by the recipe, any other by the script, in a container of
    the image that the script runs in. ``anew`` makes what is there, too. ``in_place`` tells whether what is written
    into the task's folder stays there. Raises Conclusion as ``Installer.ensure`` and ``Images.ensure`` do.
    """
    require_runnable(task)
    saved = []
    for wanted in _wanted(task):
        recipe = find_recipe(wanted.asking.name, rootdir)
        if not anew and _is_usable(machine, wanted, recipe):
            continue
        if not in_place:
            words = f"{task.name} is packed, so no runtime can be named in it: unpack the dataset, save, pack it again"
            raise Conclusion("runtime-missing", words)
        installation = _by_script(machine, wanted) if recipe is None else by_recipe(machine, recipe)
        runtime = machine.installer.ensure(installation, log, anew)
        write_reference(wanted.asking.json, Reference.of(runtime))
        saved.append(Saved(wanted.asking.json, runtime))
    return saved


def restore_runtimes(machine: Machine, task: Task, named: Mapping[str, str], rootdir: Path | None = None) -> bool:
    """Write anew the files of a task that name runtimes, from what its dataset names; tell whether any was written.

    ``named`` has checksums by ids; the cache need not have the runtimes. A file that is there stays. Whatever keeps
    one from being written, the task's own stage tells what is missing, and others are written. Raises OtvalUsageError
    for a recipe that is wrong.
    """
    written = False
    with suppress(OSError, Conclusion):
        for wanted in _wanted(task) if named else ():
            with suppress(OSError, Conclusion):
                written |= _restore(machine, wanted, named, rootdir)
    return written


def _restore(machine: Machine, wanted: _Wanted, named: Mapping[str, str], rootdir: Path | None) -> bool:
    if read_reference(wanted.asking.json) is not None:
        return False
    reference = _named(machine, wanted, named, rootdir)
    if reference is None:
        return False
    write_reference(wanted.asking.json, reference)
    return True


def _named(machine: Machine, wanted: _Wanted, named: Mapping[str, str], rootdir: Path | None) -> Reference | None:
    """Return what a dataset names for a script. One of a recipe that was changed goes on, if it is the only one."""
    recipe = find_recipe(wanted.asking.name, rootdir)
    if recipe is None:
        ids = [_script_id(machine, wanted)]
    else:
        ids = [recipe.id] if recipe.id in named else [one for one in named if name_of(one) == recipe.name]
    if len(ids) != 1 or ids[0] not in named:
        return None
    return Reference(ids[0], named[ids[0]], f"{ROOT}/{wanted.asking.name}" if recipe is None else recipe.path)


def _script_id(machine: Machine, wanted: _Wanted) -> str:
    """Return the id of what a script would install now. Raises Conclusion as ``Images.plan`` does."""
    around = json.dumps([sorted(wanted.env.items()), wanted.environment.workdir])
    return runtime_id(wanted.asking.name, machine.images.plan(wanted.request).key, wanted.asking.definition, around)


def name_runtimes(task: Task, dataset: Dataset, saved: Sequence[Saved]) -> str:
    """Name a task's runtimes in its dataset; return what keeps them from it, in one line.

    Those that are ``saved`` replace what the dataset named by their ids before.
    """
    found = filter(None, (read_reference(wanted.asking.json) for wanted in _wanted(task)))
    new = {one.runtime.id for one in saved}
    named = {one.id: one.checksum for one in found if one.id in new or one.id not in dataset.settings.runtimes}
    try:
        name_in_dataset(dataset.path / DATASET_TOML, named)
    except NotNamedError as error:
        return str(error)
    return ""


def _wanted(task: Task) -> Iterator[_Wanted]:
    environment = config_of(task).environment
    asking = asking_of_agent(task)
    if asking is not None:
        yield _Wanted(asking, agent_image(task), environment, environment.env, environment.build_timeout_sec)
    seen: set[Path] = set()
    for step in task.steps:
        asking = asking_of_verifier(step)
        if asking is None or asking.json in seen:
            continue
        seen.add(asking.json)
        own = step.verifier_image.environment if step.verifier_image else environment
        request = verifier_image(step) or agent_image(task)
        seconds = max(step.verifier_timeout, own.build_timeout_sec)
        yield _Wanted(asking, request, own, {**own.env, **step.verifier_env}, seconds)


def _is_usable(machine: Machine, wanted: _Wanted, recipe: Recipe | None) -> bool:
    """Whether a task names what its script would install now; of a recipe that was changed, what it made before."""
    reference = read_reference(wanted.asking.json)
    if reference is None or reference.name != wanted.asking.name:
        return False
    if recipe is None and reference.id != _script_id(machine, wanted):
        return False
    try:
        machine.runtimes.find(reference)
    except UnusableError:
        return False
    return True


def by_recipe(machine: Machine, recipe: Recipe) -> Installation:
    """Return what installs a recipe's runtime; its base is made if it is missing. Raises Conclusion."""
    image = machine.images.ensure(ImageRequest(None, recipe.file.base, float("inf")))
    return Installation(
        recipe.id,
        recipe.path,
        image,
        recipe.folder,
        _SEEN_AT,
        SCRIPT,
        recipe.file.seconds,
        image.config.env,
        common=recipe.common,
        python=recipe.file.python,
    )


def _by_script(machine: Machine, wanted: _Wanted) -> Installation:
    image: Image = machine.images.ensure(wanted.request)
    asking = wanted.asking
    return Installation(
        _script_id(machine, wanted),
        f"{ROOT}/{asking.name}",
        image,
        asking.folder,
        asking.seen_at,
        asking.script,
        wanted.seconds,
        {**image.config.env, **resolve(wanted.env, "environment.env")},
        wanted.environment.workdir or image.config.workdir,
        by_helper=True,
        limits=limits_of(wanted.environment),
    )
