"""What a contract says. Its form in a file is that of these structures; see ``file``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pytest_otval.core import node_id
from pytest_otval.stages.spec import JUDGE_MARKS

FORMAT = 1

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]+$", max_length=255)]
ItemName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]+(\[[A-Za-z0-9._-]+\])?$", max_length=255)]
"""Of a stage, or of one attempt: ``teacher[MODEL-3]``."""
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class TaskPin(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One task; a short array, since a contract has one for each of perhaps 50,000."""

    digest: Sha256
    """Of its files, as ``task.digest.task_digest`` makes it."""
    images: tuple[int, ...]
    """Numbers in the contract's table: the agent's image first, then those of separate verifiers."""
    stages: int = 0
    """Number in the dataset's table."""


class KnownBadPin(_Part, frozen=True):
    """A task of which a failure is expected, and no pass."""

    reason: str
    owner: str
    expires: str
    """The last day it applies, ISO 8601."""
    stages: tuple[Name, ...]


class DatasetPin(_Part, frozen=True):
    """What is run of a dataset."""

    settings: str
    """sha256 of its dataset.toml; empty where it has none."""
    stages: tuple[tuple[ItemName, ...], ...]
    """Sets of stages that tasks have, in the order they run."""
    tasks: Mapping[Name, TaskPin]
    own: tuple[ItemName, ...] = ()
    """Stages of the dataset itself."""
    folder: str = ""
    """Where it lay, if it is not found by its name."""
    known_bad: Mapping[Name, KnownBadPin] = {}
    inapplicable: Mapping[Name, Mapping[ItemName, str]] = {}
    """By task and stage: the class of the answer, where the question does not apply."""
    left_out: Mapping[str, str] = {}
    """What of it is not in the contract, and why."""


class ImagePin(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One image."""

    key: Sha256
    base: str
    """Name of its base, with the digest to which that was resolved."""
    content: str = ""
    """Its content digest, under ``--otval-strict-images`` alone: the same steps need not give the same bytes."""


class RuntimePin(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, order=True):
    """One runtime that a task names."""

    id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._+-]+$", max_length=255)]
    checksum: Sha256
    path: str
    """Its folder in containers."""


class Submission(_Part, frozen=True):
    """How the run is given to a cluster."""

    profile: Name
    partition: str = ""
    cpus: int = 0
    """Cores of a shard; 0: as many as the profile says."""
    time: str = ""
    """Time limit of a shard, as Slurm writes it."""
    shards: int = 0
    """0: as many as the recorded seconds ask for."""
    out: str = ""
    """Run folder; empty: a new one in the workspace."""


class Item(msgspec.Struct, frozen=True):
    """One stage of one task, or of a dataset."""

    id: str
    dataset: str
    task: str
    """Empty for the dataset itself."""
    stage: str
    """As in the node id: of an attempt with model and number."""
    images: tuple[str, ...] = ()
    """Keys."""


class Contract(_Part, frozen=True):
    """All of it."""

    otval_contract: int
    """``FORMAT``."""
    digest: str
    """sha256 over all the rest."""
    settings: Mapping[str, Any]
    """Verdict settings but the flavour, where they differ from the usual ones, and ``repeat``."""
    uids: str
    """Whether containers had a range of uids, on which images depend: ``mapped`` or ``own``; empty: none ran."""
    versions: Mapping[str, str]
    datasets: Mapping[Name, DatasetPin]
    images: tuple[ImagePin, ...] = ()
    runtimes: tuple[RuntimePin, ...] = ()
    checks: str = ""
    """Version of the static checks; empty where that stage is not run."""
    attacks: str = ""
    """Version of the battery; empty where that stage is not run."""
    rubrics: str = ""
    """Digests of what a judge judges by; empty where it is not asked."""
    submission: Submission | None = None

    @property
    def count(self) -> int:
        """How many items there are."""
        return sum(
            len(pin.own) + sum(len(pin.stages[task.stages]) for task in pin.tasks.values())
            for pin in self.datasets.values()
        )

    def items(self) -> Iterator[Item]:
        """Yield the items in the order of their collection: datasets and tasks by name, stages as they run."""
        for dataset, pin in sorted(self.datasets.items()):
            for stage in pin.own:
                yield Item(node_id(dataset, None, stage), dataset, "", stage)
            for name, task in sorted(pin.tasks.items()):
                keys = tuple(self.images[number].key for number in task.images)
                for stage in pin.stages[task.stages]:
                    yield Item(node_id(dataset, name, stage), dataset, name, stage, keys)

    def only(self, numbers: Collection[int]) -> Contract:
        """Return a contract of some of the items alone, by their numbers in ``items``; all else stays."""
        wanted: dict[str, dict[str, list[str]]] = {}
        own: dict[str, list[str]] = {}
        chosen = set(numbers)
        items = [item for number, item in enumerate(self.items()) if number in chosen]
        for item in items:
            if item.task:
                wanted.setdefault(item.dataset, {}).setdefault(item.task, []).append(item.stage)
            else:
                own.setdefault(item.dataset, []).append(item.stage)
        datasets = {
            name: _with_tasks(self.datasets[name], wanted.get(name, {}), own.get(name, []))
            for name in sorted({*wanted, *own})
        }
        stages = {item.stage for item in items}
        return msgspec.structs.replace(
            self,
            datasets=datasets,
            checks=self.checks if "static" in stages else "",
            attacks=self.attacks if "adversary" in stages else "",
            rubrics=self.rubrics if JUDGE_MARKS & stages else "",
        )


def _with_tasks(pin: DatasetPin, wanted: Mapping[str, list[str]], own: list[str]) -> DatasetPin:
    sets = stage_sets(wanted)
    tasks = {
        name: msgspec.structs.replace(pin.tasks[name], stages=sets.index(tuple(stages)))
        for name, stages in wanted.items()
    }
    return msgspec.structs.replace(pin, tasks=tasks, stages=sets, own=tuple(own))


def stage_sets(stages: Mapping[str, list[str]]) -> tuple[tuple[str, ...], ...]:
    """Return the different sets of stages that tasks have, each once, in the order of the tasks."""
    return tuple(dict.fromkeys(tuple(one) for one in stages.values()))


def stages_of(pin: DatasetPin) -> Iterator[tuple[str, list[str]]]:
    """Yield the stages of each task of a pinned dataset."""
    for name, task in pin.tasks.items():
        yield name, list(pin.stages[task.stages])
