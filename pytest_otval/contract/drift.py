"""Whether what a contract fixes is still so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pytest_otval.contract.compare import Difference, differences, expired
from pytest_otval.contract.files import Files, Key, changed, known_files
from pytest_otval.contract.model import Contract
from pytest_otval.contract.pinning import Pinner, Wanted
from pytest_otval.runtimes.record import Reference
from pytest_otval.runtimes.store import UnusableError
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.spec import Stage


@dataclass(frozen=True, slots=True)
class Drift:
    """What is here, and how it differs."""

    found: list[Difference]
    now: Contract
    files: Mapping[Key, Files]
    """Of the tasks that are here."""


def drift(
    contract: Contract, wanted: Iterable[Wanted], machine: Machine, stages: Mapping[str, Stage], contracts: Path
) -> Drift:
    """Return what differs from a contract, or from the part of one.

    ``contracts`` is the folder where it may be known which files its tasks had. Raises OtvalUsageError.
    """
    strict = any(image.content for image in contract.images)
    pinner = Pinner(machine, stages, contract, strict)
    now = pinner.contract(wanted, contract.submission)
    today = datetime.now(UTC).date()
    found = [*differences(contract, now), *expired(contract, today), *_missing_runtimes(contract, machine)]
    before = known_files(contracts, contract.digest, tasks_of(found))
    return Drift(list(with_files(found, before, pinner.files)), now, pinner.files)


def _missing_runtimes(contract: Contract, machine: Machine) -> Iterator[Difference]:
    for pin in contract.runtimes:
        try:
            machine.runtimes.find(Reference(pin.id, pin.checksum, pin.path))
        except UnusableError as error:
            yield Difference("runtimes", pin.id, str(error))


def tasks_of(found: Iterable[Difference]) -> list[Key]:
    """Return the tasks of which it is to be told which files changed."""
    return [(one.dataset, one.task) for one in found if one.is_of_files]


def with_files(
    found: Iterable[Difference], before: Mapping[Key, Files], after: Mapping[Key, Files]
) -> Iterator[Difference]:
    """Yield differences, those of tasks with the files that made them, as far as these are known."""
    for one in found:
        key = (one.dataset, one.task)
        words = changed(before.get(key), after.get(key)) if one.is_of_files else ""
        yield replace(one, how=words) if words else one
