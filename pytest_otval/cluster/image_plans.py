"""``image plan``, ``gc`` and ``pull``: what has to be known of tasks, or asked of registries."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from pytest_otval.cluster.environments import Environment, environments_below
from pytest_otval.cluster.prepare import opened_machine, prepared_recipes
from pytest_otval.cluster.shown import Progress, size_text
from pytest_otval.contract.kept import kept_contracts
from pytest_otval.core import REASONS, Conclusion, OtvalUsageError, Verdict, printable
from pytest_otval.images.bases import recipe_base
from pytest_otval.images.garbage import Garbage, find_garbage, remove_garbage
from pytest_otval.images.inventory import keys_of
from pytest_otval.images.model import ImageRequest
from pytest_otval.images.planning import NOT_OF_IMAGES, Tally, UnresolvedSource
from pytest_otval.images.record import image_path, record_path, records
from pytest_otval.images.steps import base_plan
from pytest_otval.images.store import Images
from pytest_otval.profile import Profile, load_profile
from pytest_otval.sandbox.apptainer import FLAVOURS
from pytest_otval.stages.machine import Extensions, own_extensions, probe_flavour
from pytest_otval.workspace import Workspace

_DAY = 86400
_MOST_UNKNOWN = 5


def plan(arguments: argparse.Namespace) -> int:
    """Say which images the tasks below folders need; with ``--dry-run`` no registry is asked."""
    workspace, profile = Workspace.from_environment(), load_profile(arguments.cluster)
    flavour, _ = probe_flavour(workspace, profile)
    extensions = own_extensions()
    if arguments.dry_run:
        profile, extensions = _unresolved_last(profile, extensions)
    here, tally = _keys_here(workspace.images), Tally()
    with (
        opened_machine(workspace, profile, flavour, arguments.dry_run, extensions) as machine,
        tempfile.TemporaryDirectory(prefix="otval-plan-") as scratch,
        Progress("planned") as progress,
    ):
        if arguments.json:
            print('{"environments": [')
        for environment in environments_below(arguments.paths, Path(scratch)):
            row = _row(machine.images, environment, here, tally)
            if arguments.json:
                print(("," if tally.environments > 1 else "") + json.dumps(row))
            else:
                print(_row_text(row))
            progress.step()
    missing = tally.keys - here
    if arguments.json:
        print(f'],\n"counts": {json.dumps(_counts(tally, len(missing)))}}}')
    else:
        print("\n".join(_count_lines(tally, len(missing))))
    return 0


def _keys_here(store: Path) -> set[str]:
    return {key for key in keys_of(store) if record_path(store, key).exists() and image_path(store, key).exists()}


def _row(images: Images, environment: Environment, here: set[str], tally: Tally) -> dict[str, object]:
    try:
        keys = [images.plan(request).key for request in environment.requests()]
    except Conclusion as conclusion:
        tally.refuse(conclusion)
        return {"name": environment.name, "class": conclusion.reason, "headline": conclusion.headline}
    tally.add(keys)
    return {"name": environment.name, "images": [{"key": key, "in_store": key in here} for key in keys]}


def _row_text(row: dict[str, object]) -> str:
    name = printable(str(row["name"]))
    if "class" in row:
        return f"{name}: {row['class']}: {printable(str(row['headline']))}"
    images = row["images"]
    assert isinstance(images, list)
    return f"{name}: " + ", ".join(
        f"{one['key'][:12]} {'in store' if one['in_store'] else 'to build'}" for one in images
    )


def _counts(tally: Tally, missing: int) -> dict[str, object]:
    refusals = [
        {"class": reason, "instruction": instruction, "count": count} for reason, instruction, count in tally.refused()
    ]
    return {
        "environments": tally.environments,
        "without_image": tally.environments - tally.asked,
        "planned": tally.planned,
        "planned_percent": round(tally.share, 2),
        "images": len(tally.keys),
        "in_store": len(tally.keys) - missing,
        "to_build": missing,
        "refusals": refusals,
    }


def _count_lines(tally: Tally, missing: int) -> Iterator[str]:
    without = tally.environments - tally.asked
    yield ""
    yield f"environments      {tally.environments:>8}"
    yield f"without an image  {without:>8}  ({', '.join(NOT_OF_IMAGES)})"
    yield f"planned           {tally.planned:>8}  {tally.share:.2f} % of {tally.asked}"
    yield f"images            {len(tally.keys):>8}  distinct: {len(tally.keys) - missing} in store, {missing} to build"
    for reason, instruction, count in tally.refused():
        yield f"{count:>8}  {reason}{f': {instruction}' if instruction else ''}"


def _unresolved_last(profile: Profile, extensions: Extensions) -> tuple[Profile, Extensions]:
    last = UnresolvedSource()
    own = extensions.image_sources
    return (
        profile.model_copy(update={"image_sources": (*profile.image_sources, last.name)}),
        replace(extensions, image_sources=lambda *given: {**own(*given), last.name: last}),
    )


def collect_garbage(arguments: argparse.Namespace) -> int:
    """Remove the images that nothing reaches."""
    workspace, profile = Workspace.from_environment(), load_profile(arguments.cluster)
    store = workspace.images
    paths = arguments.paths or _all_datasets(workspace)
    reached, refused = _reached(workspace, profile, paths, arguments.force)
    reached |= {image.key for contract in kept_contracts(workspace.contracts) for image in contract.images}
    garbage = find_garbage(store, reached, time.time() - arguments.keep_days * _DAY)
    gone = garbage if arguments.dry_run else remove_garbage(store, garbage)
    for one in gone:
        age = int((time.time() - one.made) / _DAY)
        base = printable(one.base) or "no record that can be read"
        print(f"{one.key[:12]}  {size_text(one.bytes):>9}  {age:>4} days old  {base}")
    if refused:
        print(f"reach nothing, as they cannot be planned: {_refused_text(refused)}")
    print(_sum_text(gone, len(keys_of(store)) - (len(gone) if arguments.dry_run else 0), arguments.dry_run))
    return 0


def _sum_text(gone: list[Garbage], left: int, dry_run: bool) -> str:
    done = "would go" if dry_run else "removed"
    return f"{len(gone)} images, {size_text(sum(one.bytes for one in gone))}: {done}; {left} stay"


def _refused_text(refused: Counter[str]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in refused.most_common())


def _all_datasets(workspace: Workspace) -> list[Path]:
    roots = (workspace.datasets, Path("datasets"))
    return [child for root in roots if root.is_dir() for child in sorted(root.iterdir()) if child.is_dir()]


def _reached(
    workspace: Workspace, profile: Profile, paths: Iterable[Path], force: bool
) -> tuple[set[str], Counter[str]]:
    """Return the keys of all images that tasks below paths and set-up need, and the tasks that cannot be planned.

    Images are keyed by whether uids are mapped where they are made: both are asked for if the store has both. Raises
    OtvalUsageError where there is no task at all, Conclusion for tasks whose base is unknown now, unless ``force``.
    """
    kinds = sorted({record.all_root for record in records(workspace.images)})
    reached = {
        base_plan(recipe_base(profile, recipe), all_root).key
        for recipe in prepared_recipes(profile)
        for all_root in kinds
    }
    refused: Counter[str] = Counter()
    unknown: list[str] = []
    found = 0
    with ExitStack() as stack, Progress("looked at") as progress:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="otval-gc-")))
        stores = [_images(stack, workspace, profile, all_root) for all_root in kinds]
        for environment in environments_below(paths, scratch):
            found += 1
            progress.step()
            try:
                for request in environment.requests_of_any_run():
                    for images in stores:
                        reached |= images.keys(request)
            except Conclusion as conclusion:
                refused[conclusion.reason] += 1
                if REASONS[conclusion.reason].verdict is Verdict.ERROR:
                    unknown.append(f"{environment.name}: {conclusion}")
    if not found:
        raise OtvalUsageError(
            "there is no task below the folders given, so all images would go: name the tasks' folders"
        )
    if unknown and not force:
        first = printable("; ".join(unknown[:_MOST_UNKNOWN]))
        words = (
            f"what {len(unknown)} of {found} tasks need cannot be found out now; --force takes it for nothing: {first}"
        )
        raise Conclusion("base-unavailable", words)
    return reached, refused


def _images(stack: ExitStack, workspace: Workspace, profile: Profile, all_root: bool) -> Images:
    flavour = next(flavour for flavour in FLAVOURS.values() if flavour.maps_uids is not all_root)
    return stack.enter_context(opened_machine(workspace, profile, flavour.name)).images


def pull(arguments: argparse.Namespace) -> int:
    """Get base images into the store; return 1 where one of them cannot be had."""
    workspace, profile = Workspace.from_environment(), load_profile(arguments.cluster)
    flavour, _ = probe_flavour(workspace, profile)
    status = 0
    with opened_machine(workspace, profile, flavour) as machine:
        for name in arguments.names:
            try:
                image = machine.images.ensure(ImageRequest(None, name, float("inf")))
            except Conclusion as conclusion:
                print(f"error: {conclusion}", file=sys.stderr)
                status = 1
                continue
            size = sum(file.stat().st_size for file in image.files)
            print(f"{image.key[:12]}  {size_text(size):>9}  {printable(image.base)}", flush=True)
    return status
