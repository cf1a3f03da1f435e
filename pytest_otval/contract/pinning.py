"""From tasks as they lie there to a contract."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pytest_otval.checks.version import package_version
from pytest_otval.contract.file import sealed
from pytest_otval.contract.model import (
    FORMAT,
    Contract,
    DatasetPin,
    ImagePin,
    KnownBadPin,
    RuntimePin,
    Submission,
    TaskPin,
    stage_sets,
)
from pytest_otval.contract.settings import chosen_settings
from pytest_otval.contract.versions import tool_versions
from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.pinned import PinnedImage, inapplicable, pinned_images, pinned_runtimes
from pytest_otval.stages.spec import KIND_OF, Stage
from pytest_otval.task.dataset import DATASET_TOML, MAX_TOML_BYTES, Dataset
from pytest_otval.task.digest import task_content
from pytest_otval.task.load import load_task
from pytest_otval.task.reading import NotReadableError, read_regular
from pytest_otval.task.source import TaskSource


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be pinned of a dataset."""

    dataset: Dataset
    source: TaskSource
    tasks: Mapping[str, list[str]]
    """Stages by task."""
    own: tuple[str, ...] = ()
    folder: str = ""
    """Where it lies, if it is not found by its name."""
    left_out: Mapping[str, str] = field(default_factory=dict)


Files = Mapping[str, str]
"""Of a task: type, exec bit and digest by path."""


class Pinner:
    """Pins tasks; ``files`` has afterwards what is known of the files of each, by dataset and name."""

    def __init__(
        self, machine: Machine, stages: Mapping[str, Stage], trusted: Contract | None = None, strict: bool = False
    ) -> None:
        """``strict`` fixes images by their content, too.

        ``trusted`` spares the planning of a task that has the digest it has there, once that plan's result was met:
        what an image is made of is decided by the task's files and by what its base is resolved to, so one task tells
        for all that have the same image.
        """
        self._strict = strict
        self._machine = machine
        self._stages = stages
        self._trusted = trusted
        self._images: dict[ImagePin, int] = {}
        self._met: set[str] = set()
        self._runtimes: set[RuntimePin] = set()
        self.files: dict[tuple[str, str], Files] = {}

    def contract(self, wanted: Iterable[Wanted], submission: Submission | None = None) -> Contract:
        """Return the contract of some tasks.

        Raises OtvalUsageError where an image cannot be resolved or a task cannot be read.
        """
        machine = self._machine
        datasets = {one.dataset.name: self._dataset(one) for one in wanted}
        stages = {stage for pin in datasets.values() for kinds in (*pin.stages, pin.own) for stage in kinds}
        return sealed(
            Contract(
                otval_contract=FORMAT,
                digest="",
                settings=chosen_settings(machine.settings.verdict, machine.settings.run.attempts),
                uids=self._uids() if any(self._stages[stage].containers for stage in stages) else "",
                versions=tool_versions(),
                datasets=datasets,
                images=tuple(self._images),
                runtimes=tuple(sorted(self._runtimes)),
                checks=(machine.checks_version or "") if "static" in stages else "",
                attacks=package_version(("attacks",)) if "adversary" in stages else "",
                rubrics=self._rubrics(stages),
                submission=submission,
            )
        )

    def _rubrics(self, stages: Collection[str]) -> str:
        kinds = [kind for stage, kind in KIND_OF.items() if stage in stages]
        return " ".join(f"{kind} {self._machine.rubric(kind).digest}" for kind in kinds)

    def _uids(self) -> str:
        return "mapped" if self._machine.sandbox.maps_uids else "own"

    def _dataset(self, wanted: Wanted) -> DatasetPin:
        sets = stage_sets(wanted.tasks)
        tasks: dict[str, TaskPin] = {}
        classes: dict[str, dict[str, str]] = {}
        for name, stages in sorted(wanted.tasks.items()):
            with _unpacked(wanted.source, name, self._machine.scratch.folder) as folder:
                digest, self.files[wanted.dataset.name, name] = task_content(folder)
                digest = digest.removeprefix("sha256:")
                images, found = self._task(wanted, name, folder, digest, stages)
            tasks[name] = TaskPin(digest, images, sets.index(tuple(stages)))
            if found:
                classes[name] = found
        known_bad = {
            name: KnownBadPin(bad.reason, bad.owner, bad.expires.isoformat(), bad.stages)
            for name, bad in sorted(wanted.dataset.settings.known_bad.items())
            if name in tasks
        }
        return DatasetPin(
            settings=settings_digest(wanted.dataset.path),
            stages=sets,
            tasks=tasks,
            own=wanted.own,
            folder=wanted.folder,
            known_bad=known_bad,
            inapplicable=classes,
            left_out=wanted.left_out,
        )

    def _task(
        self, wanted: Wanted, name: str, folder: Path, digest: str, stages: list[str]
    ) -> tuple[tuple[int, ...], dict[str, str]]:
        """Return the numbers of a task's images, and the classes of what does not apply to it, by stage."""
        if not any(self._stages[stage].containers for stage in stages):
            # A part of a contract may have no more than the static stage of a task that has images.
            return self._numbers(self._known_images(wanted.dataset.name, name)), {}
        spared = self._spared(wanted.dataset.name, name, digest, stages)
        if spared is not None:
            return spared
        task = load_task(folder, wanted.dataset.name)
        try:
            images = [self._image(f"{wanted.dataset.name}/{name}", one) for one in pinned_images(self._machine, task)]
        except Conclusion as conclusion:
            raise OtvalUsageError(f"the images of {wanted.dataset.name}/{name} cannot be told: {conclusion}") from None
        self._met.update(image.key for image in images)
        for one in pinned_runtimes(self._machine, task):
            self._runtimes.add(RuntimePin(one.id, one.checksum, one.path))
        found = {stage: inapplicable(self._machine, task, self._stages[stage]) for stage in stages}
        return self._numbers(images), {stage: reason for stage, reason in found.items() if reason}

    def _image(self, task: str, image: PinnedImage) -> ImagePin:
        if self._strict and not image.content:
            raise OtvalUsageError(f"--otval-strict-images: the image of {task} is not made yet: run `-m build` first")
        return ImagePin(image.key, image.base, image.content if self._strict else "")

    def _known_images(self, dataset: str, name: str) -> list[ImagePin]:
        trusted = self._trusted
        known = trusted.datasets[dataset].tasks.get(name) if trusted and dataset in trusted.datasets else None
        return [trusted.images[number] for number in known.images] if trusted and known else []

    def _spared(
        self, dataset: str, name: str, digest: str, stages: list[str]
    ) -> tuple[tuple[int, ...], dict[str, str]] | None:
        trusted = self._trusted
        pin = trusted.datasets.get(dataset) if trusted is not None else None
        known = pin.tasks.get(name) if pin is not None else None
        if trusted is None or pin is None or known is None or known.digest != digest:
            return None
        images = [trusted.images[number] for number in known.images]
        classes = dict(pin.inapplicable.get(name, {}))
        if not images or classes or trusted.runtimes or not {image.key for image in images} <= self._met:
            return None
        return (self._numbers(images), {}) if list(pin.stages[known.stages]) == stages else None

    def _numbers(self, images: Iterable[ImagePin]) -> tuple[int, ...]:
        return tuple(self._images.setdefault(image, len(self._images)) for image in images)


@contextmanager
def _unpacked(source: TaskSource, name: str, scratch: Path) -> Iterator[Path]:
    """Give a task's folder; what had to be unpacked for it is removed afterwards."""
    try:
        folder = source.folder(name, scratch)
    except Conclusion as conclusion:
        raise OtvalUsageError(f"{source.path}: task {name} cannot be pinned: {conclusion}") from None
    try:
        yield folder
    finally:
        if folder.is_relative_to(scratch):
            shutil.rmtree(folder, ignore_errors=True)


def settings_digest(dataset: Path) -> str:
    """Return the sha256 of a dataset's dataset.toml; empty where it has none that can be read."""
    try:
        return hashlib.sha256(read_regular(dataset / DATASET_TOML, MAX_TOML_BYTES)).hexdigest()
    except (FileNotFoundError, NotReadableError):
        return ""
