"""The actions of ``python -m pytest_otval runtime``."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pytest_otval.cluster.environments import environments_below
from pytest_otval.cluster.prepare import opened_machine
from pytest_otval.cluster.runtime_command import KEEP_DAYS
from pytest_otval.cluster.shown import size_text
from pytest_otval.contract.kept import kept_contracts
from pytest_otval.core import Conclusion, OtvalUsageError, printable
from pytest_otval.profile import load_profile
from pytest_otval.runtimes.recipe import Recipe, find_recipe, recipe_names
from pytest_otval.runtimes.record import (
    TASK_JSON,
    VERIFIER_JSON,
    Runtime,
    read_record,
    read_reference,
    records,
    short,
)
from pytest_otval.runtimes.store import Runtimes
from pytest_otval.stages.machine import Machine, probe_flavour
from pytest_otval.stages.saving import by_recipe, name_runtimes, restore_runtimes, save_runtimes
from pytest_otval.task.dataset import dataset_folder, load_dataset
from pytest_otval.task.index import is_task
from pytest_otval.task.load import load_task
from pytest_otval.workspace import Workspace

_DAY = 86400
_MAY_HIDE_RUNTIMES = ("ds-unreadable", "ds-parse", "ds-invalid", "ds-unknown-field")
"""Findings of a dataset.toml: what is meant to name a runtime may be what is wrong."""


def build(arguments: argparse.Namespace) -> int:
    """Make runtimes and say where they are; return 1 where one could not be made."""
    workspace, profile = Workspace.from_environment(), load_profile(arguments.cluster)
    wanted = [_found(what) for what in arguments.what]
    flavour, _ = probe_flavour(workspace, profile)
    status = 0
    with opened_machine(workspace, profile, flavour) as machine:
        for what in wanted:
            log = workspace.cache / "runtimes" / f"{what.name}.log"
            log.unlink(missing_ok=True)
            try:
                for line in _built(machine, what, arguments.force, log):
                    print(line, flush=True)
            except Conclusion as conclusion:
                print(f"error: {conclusion}", file=sys.stderr)
                if conclusion.log:
                    print(conclusion.log, file=sys.stderr)
                status = 1
            if log.exists():
                print(f"what the installation said: {log}", file=sys.stderr)
    return status


def _found(what: str) -> Recipe | Path:
    """Return the task that a path lies in, or the recipe of a name."""
    path = Path(what).absolute()
    task = next((folder for folder in (path, *path.parents) if path.exists() and is_task(folder)), None)
    if task is not None:
        return task
    recipe = find_recipe(what)
    if recipe is None:
        known = ", ".join(recipe_names())
        raise OtvalUsageError(f"{what} is neither a task's folder nor a recipe; recipes: {known}")
    return recipe


def _built(machine: Machine, what: Recipe | Path, anew: bool, log: Path) -> Iterator[str]:
    if isinstance(what, Path):
        dataset = load_dataset(dataset_folder(what))
        task = load_task(what, dataset.name)
        restore_runtimes(machine, task, dataset.settings.runtimes)
        saved = save_runtimes(machine, task, anew=anew, log=log)
        trouble = name_runtimes(task, dataset, saved)
        if trouble:
            print(f"warning: {trouble}", file=sys.stderr)
        for one in saved:
            yield f"{line_of(one.runtime)}  {one.file}"
        if not saved:
            yield f"{what}: has all that its scripts ask for"
        return
    yield line_of(machine.installer.ensure(by_recipe(machine, what), log, anew))


def line_of(runtime: Runtime) -> str:
    """Return the line that lists a runtime."""
    return printable(f"{runtime.id}  {short(runtime.checksum)}  {size_text(runtime.bytes):>9}  {runtime.path}")


def opened_cache() -> Runtimes:
    """Return the user's cache. Raises OtvalUsageError."""
    return Runtimes(Workspace.from_environment().runtimes)


def list_runtimes(arguments: argparse.Namespace) -> int:
    """List the cache."""
    cache = opened_cache()
    found = list(records(cache.cache))
    missing = [name for name in recipe_names() if name not in {one.name for one in found}]
    if arguments.json:
        rows = [{key: value for key, value in asdict(one).items() if key not in ("files", "packages")} for one in found]
        print(json.dumps({"runtimes": rows, "recipes_not_built": missing}, indent=1))
        return 0
    for one in found:
        print(f"{line_of(one)}  {printable(one.made)}  {printable(one.base)}")
    for name in missing:
        print(f"{name}: not built: python -m pytest_otval runtime build {name}")
    return 0


def show(arguments: argparse.Namespace) -> int:
    """Show one manifest."""
    runtime = find(opened_cache(), arguments.runtime)[0]
    if arguments.json:
        print(json.dumps(asdict(runtime), indent=1))
        return 0
    for name in ("id", "checksum", "path", "python", "base", "base_key", "made"):
        print(f"{name:9} {printable(str(getattr(runtime, name)))}")
    print(f"{'size':9} {runtime.bytes} bytes ({size_text(runtime.bytes)}), {len(runtime.files)} files")
    for kind, packages in runtime.packages.items():
        for name, package in packages.items():
            print(printable(f"{kind:9} {name} {package.version}  {package.licence}".rstrip()))
    if arguments.files:
        for path, digest in sorted(runtime.files.items()):
            print(printable(f"{digest}  {path}"))
    return 0


def find(cache: Runtimes, prefix: str) -> list[Runtime]:
    """Return the runtimes whose id or checksum begins so, the newest first. Raises Conclusion: none, or several ids."""
    found = [one for one in records(cache.cache) if one.id.startswith(prefix) or one.checksum.startswith(prefix)]
    ids = sorted({one.id for one in found})
    if len(ids) != 1:
        words = (
            f"has no runtime {printable(prefix)}" if not ids else f"has several {printable(prefix)}: {', '.join(ids)}"
        )
        raise Conclusion("runtime-missing", f"{cache.cache} {words}")
    return found


def verify(arguments: argparse.Namespace) -> int:
    """Read runtimes and say which are not what their manifests say; return 1 if there are any."""
    cache = opened_cache()
    named = [one.checksum for prefix in arguments.runtimes for one in find(cache, prefix)]
    checksums = named or cache.checksums()
    faults = 0
    since = time.time() - KEEP_DAYS * _DAY
    for checksum in checksums:
        runtime = read_record(cache.cache, checksum)
        fault = "there is no manifest that can be read" if runtime is None else cache.fault(runtime)
        if fault:
            faults += 1
            # A squashfs gets its name before its manifest is written, so it may be about to be whole.
            said = ""
            if arguments.remove and runtime is None and cache.is_young(checksum, since):
                said = ": kept, since it may be about to be published"
            elif arguments.remove:
                cache.remove(checksum)
                said = ": removed"
            name = short(checksum) if runtime is None else f"{runtime.id}  {short(checksum)}"
            print(f"{name}: {fault}{said}", flush=True)
    print(f"{len(checksums)} runtimes, {faults} not right", file=sys.stderr)
    return 1 if faults else 0


def collect_garbage(arguments: argparse.Namespace) -> int:
    """Remove the runtimes that no task names, and that are no newest of a recipe."""
    workspace = Workspace.from_environment()
    cache = Runtimes(workspace.runtimes)
    found = named_below(arguments.paths or _all_datasets(workspace))
    if not found.tasks:
        words = "there is no task below the folders given, so all runtimes would go: name the tasks' folders"
        raise OtvalUsageError(words)
    if found.unread:
        warn_of(found)
        words = f"{len(found.unread)} tasks or datasets cannot be read, so nothing is removed: mend or remove them"
        raise OtvalUsageError(words)
    named = set(found.checksums)
    named |= {pin.checksum for contract in kept_contracts(workspace.contracts) for pin in contract.runtimes}
    for name in recipe_names():
        recipe = find_recipe(name)
        newest = cache.newest(recipe.id) if recipe is not None else None
        named |= {newest.checksum} if newest is not None else set()
    gone = cache.garbage(named, time.time() - arguments.keep_days * _DAY)
    total = sum(map(cache.size, gone))
    for checksum in gone:
        runtime = read_record(cache.cache, checksum)
        what = runtime.id if runtime is not None else "no manifest that can be read"
        print(f"{short(checksum)}  {size_text(cache.size(checksum)):>9}  {what}")
        if not arguments.dry_run:
            cache.remove(checksum)
    for part in cache.parts(time.time() - arguments.keep_days * _DAY):
        print(f"{part.name}  part of a download")
        if not arguments.dry_run:
            part.unlink(missing_ok=True)
    done = "would go" if arguments.dry_run else "removed"
    print(f"{len(gone)} runtimes, {size_text(total)}: {done}")
    return 0


@dataclass
class Named:
    """What tasks and their datasets name."""

    checksums: set[str] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)
    """What may name more but cannot be read, and why: a line each."""
    tasks: int = 0


def named_below(paths: Iterable[Path]) -> Named:
    """Return what the tasks below some folders and their datasets name. Raises OtvalUsageError."""
    named = Named()
    datasets: set[Path] = set()
    with tempfile.TemporaryDirectory(prefix="otval-gc-") as scratch:
        for environment in environments_below(paths, Path(scratch)):
            if not environment.is_task:
                continue
            named.tasks += 1
            datasets.add(environment.dataset)
            if environment.refused is not None:
                named.unread.append(printable(f"{environment.name}: {environment.refused}"))
                continue
            for file in _references(environment.folder):
                try:
                    reference = read_reference(file)
                except Conclusion as conclusion:
                    named.unread.append(printable(f"{environment.name}: {conclusion}"))
                    continue
                named.checksums |= {reference.checksum} if reference is not None else set()
    for dataset in map(load_dataset, sorted(datasets)):
        named.checksums |= set(dataset.settings.runtimes.values())
        wrong = [finding for finding in dataset.findings if finding.check in _MAY_HIDE_RUNTIMES]
        named.unread += [printable(f"{dataset.path}: {finding}") for finding in wrong]
    return named


def warn_of(named: Named) -> None:
    """Say what could not be read."""
    for line in named.unread:
        print(f"warning: {line}", file=sys.stderr)


def _references(task: Path) -> Iterator[Path]:
    yield task / "setup_files" / TASK_JSON
    yield task / "tests" / VERIFIER_JSON
    yield from sorted(task.glob(f"steps/*/tests/{VERIFIER_JSON}"))


def _all_datasets(workspace: Workspace) -> list[Path]:
    roots = (workspace.datasets, Path("datasets"))
    return [child for root in roots if root.is_dir() for child in sorted(root.iterdir()) if child.is_dir()]
