"""What differs between two contracts, by class; for one of them the present state may stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import Literal, get_args

from pytest_otval.contract.model import Contract, DatasetPin, ImagePin, TaskPin

Kind = Literal[
    "tasks", "images", "runtimes", "settings", "datasets", "checks", "attacks", "rubrics", "expected", "versions"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Classes of differences, in the order in which they are told; each can be accepted by ``contract update``."""

HARMLESS: frozenset[Kind] = frozenset(("versions",))
"""Told, and no reason to refuse a run."""

CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Difference:
    """One of them."""

    kind: Kind
    what: str
    """What differs: ``demo/answer-file``, ``isolation``."""
    how: str
    """In which way."""
    dataset: str = ""
    task: str = ""
    """Which task has to be asked again; with neither, all that the class concerns."""

    @property
    def is_of_files(self) -> bool:
        """Whether it is about files of a task that there was and is."""
        return self.kind == "tasks" and self.how == CHANGED

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}: {self.how}"


def differences(before: Contract, after: Contract) -> list[Difference]:
    """Return what differs, by class and name."""
    found = chain(
        _datasets(before, after),
        _settings(before, after),
        # One that is no longer named is so by a task that changed.
        (Difference("runtimes", one.id, "is new") for one in after.runtimes if one not in before.runtimes),
        _version("checks", "version of the static checks", before.checks, after.checks),
        _version("attacks", "version of the battery", before.attacks, after.attacks),
        _version("rubrics", "what is judged by", before.rubrics, after.rubrics),
        _values("versions", before.versions, after.versions),
    )
    return sorted(found, key=lambda one: KINDS.index(one.kind))


def _datasets(before: Contract, after: Contract) -> Iterator[Difference]:
    for name in sorted({*before.datasets, *after.datasets}):
        old, new = before.datasets.get(name), after.datasets.get(name)
        if old is None or new is None:
            yield Difference("datasets", name, "is new" if old is None else "is gone", name)
            continue
        if old.settings != new.settings:
            yield Difference("datasets", name, "its dataset.toml changed", name)
        yield from _tasks(name, before, after)
        yield from _expected(name, old, new)


def _tasks(dataset: str, before: Contract, after: Contract) -> Iterator[Difference]:
    old, new = before.datasets[dataset], after.datasets[dataset]
    for name in sorted({*old.tasks, *new.tasks}):
        what, was, now = f"{dataset}/{name}", old.tasks.get(name), new.tasks.get(name)
        if was is None or now is None:
            yield Difference("tasks", what, "is new" if was is None else "is gone", dataset, name)
            continue
        if was.digest != now.digest:
            yield Difference("tasks", what, CHANGED, dataset, name)
        elif _images(before, was) != _images(after, now):
            yield Difference("images", what, _other_images(before, was, after, now), dataset, name)
        if old.stages[was.stages] != new.stages[now.stages]:
            yield Difference("tasks", what, "has other stages", dataset, name)


def _images(contract: Contract, task: TaskPin) -> list[ImagePin]:
    return [contract.images[number] for number in task.images]


def _other_images(before: Contract, was: TaskPin, after: Contract, now: TaskPin) -> str:
    old, new = _images(before, was), _images(after, now)
    bases = [", ".join(image.base for image in images) or "none" for images in (old, new)]
    if bases[0] != bases[1]:
        return f"its base is {bases[1]} and was {bases[0]}"
    same_keys = [image.key for image in old] == [image.key for image in new]
    return "its image has other bytes" if same_keys else "its image is made in another way"


def _expected(dataset: str, old: DatasetPin, new: DatasetPin) -> Iterator[Difference]:
    for name in sorted({*old.known_bad, *new.known_bad} & {*old.tasks} & {*new.tasks}):
        if old.known_bad.get(name) != new.known_bad.get(name):
            how = "is no longer known bad" if name not in new.known_bad else "is known bad in another way"
            yield Difference("expected", f"{dataset}/{name}", how, dataset, name)
    for name in sorted({*old.inapplicable, *new.inapplicable} & {*old.tasks} & {*new.tasks}):
        was, now = old.inapplicable.get(name, {}), new.inapplicable.get(name, {})
        # What a run told may say more than the files do.
        if (
            any(was.get(stage) != reason for stage, reason in now.items())
            and old.tasks[name].digest == new.tasks[name].digest
        ):
            yield Difference("expected", f"{dataset}/{name}", "other questions apply to it", dataset, name)


def _settings(before: Contract, after: Contract) -> Iterator[Difference]:
    yield from _values("settings", before.settings, after.settings)
    # A part of a contract may have no containers.
    if before.uids != after.uids and after.uids:
        words = {"mapped": "a range of uids is mapped", "own": "no range of uids is mapped"}
        yield Difference("settings", "uids", f"{words[after.uids]}, and {words[before.uids]} in the contract")


def _values(kind: Kind, before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[Difference]:
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old != new:
            yield Difference(kind, name, f"is {_shown(new)} and was {_shown(old)}")


def _shown(value: object) -> str:
    return "not set" if value is None else str(value)


def _version(kind: Kind, what: str, before: str, after: str) -> Iterator[Difference]:
    if before != after:
        yield Difference(kind, what, f"is {after or 'none'} and was {before or 'none'}")


def expired(contract: Contract, today: date) -> Iterator[Difference]:
    """Yield the expectations of a contract that no longer apply on a day."""
    for dataset, pin in sorted(contract.datasets.items()):
        for name, bad in sorted(pin.known_bad.items()):
            if date.fromisoformat(bad.expires) < today:
                how = f"what is expected of it applied until {bad.expires} ({bad.owner}: {bad.reason})"
                yield Difference("expected", f"{dataset}/{name}", how, dataset, name)
