"""What is made before jobs start: their images where they are built at submission, and all that they copy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pytest_otval.cluster.job_profile import write_job_profile
from pytest_otval.cluster.packing import Packed, pack_dataset, pack_environment, packed
from pytest_otval.cluster.shards import Work
from pytest_otval.cluster.staging import Staging
from pytest_otval.contract.model import Contract
from pytest_otval.contract.pinning import Wanted
from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.history import Record, read_history
from pytest_otval.images.record import usable_record
from pytest_otval.profile import Profile
from pytest_otval.runtimes.record import record_path, squashfs_path
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import image_requests
from pytest_otval.task.load import load_task
from pytest_otval.workspace import Workspace

PACKED = "datasets"
"""The folder of a run folder with its tasks, found by the names of datasets as others are."""


def works(contract: Contract, history: Path) -> list[Work]:
    """Return a contract's items with what earlier runs learnt of them."""
    known: dict[str, Mapping[str, Record]] = {}
    found = []
    for item in contract.items():
        if item.dataset not in known:
            known[item.dataset] = read_history(history, item.dataset)
        record = known[item.dataset].get(item.task, Record())
        found.append(Work(item.id, item.images, record.seconds.get(item.stage)))
    return found


def make_images(machine: Machine, contract: Contract, wanted: Iterable[Wanted], say: Callable[[str], None]) -> None:
    """Make the images of a contract that the store does not have; which cannot be made, their stages tell.

    Raises Conclusion of a class that is an error of ours or the machine's only where no image can be made at all.
    """
    store = Workspace.from_environment().images
    missing = {image.key for image in contract.images if usable_record(store, image.key) is None}
    if missing:
        say(f"making {len(missing)} images before jobs start")
    for one in wanted:
        pins = contract.datasets[one.dataset.name].tasks
        for name in one.tasks:
            keys = {contract.images[number].key for number in pins[name].images}
            if keys & missing:
                _make(machine, one, name)
                missing -= keys


def _make(machine: Machine, wanted: Wanted, name: str) -> None:
    folder = wanted.source.folder(name, machine.scratch.folder)
    try:
        for request in image_requests(load_task(folder, wanted.dataset.name)):
            machine.images.ensure(request)
    except Conclusion:
        # The task's own stages find it, and tell it with its log.
        return
    finally:
        if folder.is_relative_to(machine.scratch.folder):
            shutil.rmtree(folder, ignore_errors=True)


def make_staging(
    run: Path, contract: Contract, folders: Mapping[str, Path], profile: Profile, plugins: Sequence[str]
) -> Staging:
    """Pack what the jobs of a run need; ``folders`` are those of its datasets, by name.

    Raises OtvalUsageError, Conclusion ``bad-task`` for a task that cannot be packed.
    """
    workspace = Workspace.from_environment()
    (run / PACKED).mkdir(exist_ok=True)
    try:
        return Staging(
            pack_environment(workspace.cache / "environments", plugins),
            {
                name: tuple(pack_dataset(folders[name], pin.tasks, run / PACKED / name))
                for name, pin in contract.datasets.items()
            },
            tuple(_runtimes(contract, workspace.runtimes)),
            os.path.realpath(workspace.images),
            packed(write_job_profile(run, profile)),
            os.path.realpath(workspace.models),
        )
    except OSError as error:
        raise OtvalUsageError(f"{run} cannot be filled: {error.strerror or error}") from None


def _runtimes(contract: Contract, cache: Path) -> Iterable[Packed]:
    for checksum in dict.fromkeys(pin.checksum for pin in contract.runtimes):
        yield packed(record_path(cache, checksum))
        yield packed(squashfs_path(cache, checksum))
