"""Whether what a contract fixes is still so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

from pytest_otval.contract.compare import Difference, differences, expired
from pytest_otval.contract.files import changed, known_files
from pytest_otval.contract.model import Contract
from pytest_otval.contract.pinning import Pinner, Wanted
from pytest_otval.runtimes.record import Reference
from pytest_otval.runtimes.store import UnusableError
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.spec import Stage


def drift(
    contract: Contract,
    wanted: Iterable[Wanted],
    machine: Machine,
    stages: Mapping[str, Stage],
    today: date,
    contracts: Path,
) -> tuple[list[Difference], Contract]:
    """Return what differs from a contract, or from the part of one, and the contract of what is here now.

    ``contracts`` is the folder where it may be known which files its tasks had. Raises OtvalUsageError.
    """
    pinner = Pinner(machine, stages, trusted=contract)
    now = pinner.contract(wanted, contract.submission)
    found = [*differences(contract, now), *expired(contract, today), *_missing_runtimes(contract, machine)]
    return list(with_files(found, contract, pinner.files, contracts)), now


def _missing_runtimes(contract: Contract, machine: Machine) -> Iterator[Difference]:
    for pin in contract.runtimes:
        try:
            machine.runtimes.find(Reference(pin.id, pin.checksum, pin.path))
        except UnusableError as error:
            yield Difference("runtimes", pin.id, str(error))


def with_files(
    found: Iterable[Difference], contract: Contract, now: Mapping[tuple[str, str], Mapping[str, str]], contracts: Path
) -> Iterator[Difference]:
    """Yield differences, those of tasks with the files that made them, as far as these are known."""
    found = list(found)
    keys = [(one.dataset, one.task) for one in found if one.kind == "tasks" and one.how == "changed"]
    before = known_files(contracts, contract.digest, keys)
    for one in found:
        words = ""
        if one.kind == "tasks" and one.how == "changed":
            words = changed(before.get((one.dataset, one.task)), now.get((one.dataset, one.task)))
        yield replace(one, how=words) if words else one
