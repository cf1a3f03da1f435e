"""``--otval-save-runtimes``: the runtimes that a task's scripts ask for are made, cached, and named in the task."""

from __future__ import annotations

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
from pytest_otval.runtimes.store import Runtimes, UnusableError
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
        if not anew and _is_usable(machine.runtimes, wanted.asking):
            continue
        if not in_place:
            words = f"{task.name} is packed, so no runtime can be named in it: unpack the dataset, save, pack it again"
            raise Conclusion("runtime-missing", words)
        runtime = machine.installer.ensure(_installation(machine, wanted, rootdir), log, anew)
        write_reference(wanted.asking.json, Reference.of(runtime))
        saved.append(Saved(wanted.asking.json, runtime))
    return saved


def restore_runtimes(machine: Machine, task: Task, named: Mapping[str, str], rootdir: Path | None = None) -> bool:
    """Write anew the files of a task that name runtimes, from what its dataset names; tell whether any was written.

    ``named`` has checksums by ids; the cache need not have the runtimes. A file that is there stays. Whatever keeps it
    from being written, the task's own stage tells what is missing.
    """
    written = False
    with suppress(OSError, Conclusion):
        for wanted in _wanted(task) if named else ():
            reference = _named(machine, wanted.asking, wanted.request, named, rootdir)
            if reference is not None and read_reference(wanted.asking.json) is None:
                write_reference(wanted.asking.json, reference)
                written = True
    return written


def _named(
    machine: Machine, asking: Asking, request: ImageRequest, named: Mapping[str, str], rootdir: Path | None
) -> Reference | None:
    """Return what a dataset names for a script. One of a recipe that was changed goes on, if it is the only one."""
    recipe = find_recipe(asking.name, rootdir)
    if recipe is None:
        ids = [runtime_id(asking.name, machine.images.plan(request).key, asking.definition)]
    else:
        ids = [recipe.id] if recipe.id in named else [one for one in named if name_of(one) == recipe.name]
    if len(ids) != 1 or ids[0] not in named:
        return None
    return Reference(ids[0], named[ids[0]], f"{ROOT}/{asking.name}" if recipe is None else recipe.path)


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


def _installation(machine: Machine, wanted: _Wanted, rootdir: Path | None) -> Installation:
    recipe = find_recipe(wanted.asking.name, rootdir)
    return _by_script(machine, wanted) if recipe is None else by_recipe(machine, recipe)


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


def _is_usable(runtimes: Runtimes, asking: Asking) -> bool:
    reference = read_reference(asking.json)
    if reference is None or reference.name != asking.name:
        return False
    try:
        runtimes.find(reference)
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
        runtime_id(asking.name, image.key, asking.definition),
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
