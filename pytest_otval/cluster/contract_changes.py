"""What changed against a contract: ``contract diff``, ``verify`` and ``update``."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_otval.cluster.prepare import opened_machine
from pytest_otval.contract.again import estimate, to_ask_again
from pytest_otval.contract.compare import HARMLESS, KINDS, Difference, differences
from pytest_otval.contract.drift import Drift, drift, tasks_of, with_files
from pytest_otval.contract.file import read_contract, sealed, write_contract
from pytest_otval.contract.files import keep_files, known_files
from pytest_otval.contract.model import Contract, stages_of
from pytest_otval.contract.outcomes import keeping_outcomes, with_outcomes
from pytest_otval.contract.pinning import Wanted
from pytest_otval.contract.place import dataset_folder_of
from pytest_otval.contract.settings import settings_of
from pytest_otval.core import OtvalUsageError
from pytest_otval.ledger import find_run
from pytest_otval.profile import Profile, load_profile
from pytest_otval.stages.machine import probe_flavour
from pytest_otval.stages.spec import own_stages
from pytest_otval.task.dataset import load_dataset
from pytest_otval.task.source import source_of
from pytest_otval.workspace import Workspace

MOST_SHOWN = 40


def diff(arguments: argparse.Namespace) -> int:
    """Tell what differs, and what has to run again. Raises OtvalUsageError, Conclusion."""
    contract = read_contract(arguments.contract)
    profile = load_profile(arguments.cluster)
    workspace = Workspace.from_environment()
    if arguments.other is None:
        drifted = _against_here(contract, profile, workspace)
        found, other = drifted.found, drifted.now
    else:
        other = read_contract(arguments.other)
        found = _named_by_file(contract, other, workspace.contracts)
    _tell(found)
    told = estimate(to_ask_again(other, found), workspace.root / "history")
    print(told)
    for name, partition in sorted((profile.slurm.partitions if profile.slurm else {}).items()):
        if told.items > told.guessed:
            print(f"  {told.node_hours(partition.cores):.2f} node-hours of partition {name} ({partition.cores} cores)")
    return 0


def _named_by_file(before: Contract, after: Contract, contracts: Path) -> list[Difference]:
    found = differences(before, after)
    old, new = (known_files(contracts, one.digest, tasks_of(found)) for one in (before, after))
    return list(with_files(found, old, new))


def verify(arguments: argparse.Namespace) -> int:
    """Return 1 where a run would be refused. Raises OtvalUsageError, Conclusion."""
    contract = read_contract(arguments.contract)
    found = _against_here(contract, load_profile(arguments.cluster), Workspace.from_environment()).found
    _tell(found)
    return int(any(one.kind not in HARMLESS for one in found))


def update(arguments: argparse.Namespace) -> int:
    """Take changes over where their classes are accepted, else return 1. Raises OtvalUsageError, Conclusion."""
    contract = read_contract(arguments.contract)
    workspace = Workspace.from_environment()
    drifted = _against_here(contract, load_profile(arguments.cluster), workspace)
    found = drifted.found
    refused = [one for one in found if one.kind not in {*arguments.accept, *HARMLESS}]
    if refused:
        _tell(refused)
        kinds = " ".join(f"--accept {kind}" for kind in dict.fromkeys(one.kind for one in refused))
        print(f"nothing was changed: to take all of this over, say {kinds}")
        return 1
    now = keeping_outcomes(drifted.now, contract)
    if arguments.outcomes:
        now = with_outcomes(now, find_run(arguments.outcomes))
    now = sealed(now)
    if now.digest == contract.digest:
        print(f"{arguments.contract} holds as it is")
        return 0
    write_contract(arguments.contract, now)
    keep_files(workspace.contracts, now.digest, drifted.files)
    _tell(found)
    print(f"{arguments.contract} is up to date: digest {now.digest}")
    return 0


def _against_here(contract: Contract, profile: Profile, workspace: Workspace) -> Drift:
    """Compare with the tasks below the current folder and the workspace. Raises OtvalUsageError, Conclusion."""
    _, attempts = settings_of(contract, "")
    own = {stage.name: stage for stage in own_stages(attempts.teacher, attempts.k)}
    named = {stage for pin in contract.datasets.values() for stages in (*pin.stages, pin.own) for stage in stages}
    if named - set(own):
        words = f"the contract has the stage {min(named - set(own))!r} of a plugin, which only pytest knows"
        raise OtvalUsageError(f"{words}: replay it, or prepare it anew")
    places = (Path.cwd(), workspace.root)
    wanted = []
    for name, pin in sorted(contract.datasets.items()):
        folder = dataset_folder_of(name, pin, places)
        source, dataset = source_of(folder), load_dataset(folder)
        tasks = {task: stages for task, stages in stages_of(pin) if source.has(task)}
        wanted.append(Wanted(dataset, source, tasks, pin.own, pin.folder, pin.left_out))
    flavour, _ = probe_flavour(workspace, profile)
    verdict, _ = settings_of(contract, flavour)
    with opened_machine(workspace, profile, flavour, verdict=verdict, attempts=attempts) as machine:
        return drift(contract, wanted, machine, own, workspace.contracts)


def _tell(found: list[Difference]) -> None:
    if not found:
        print("nothing changed")
    for kind in KINDS:
        of_kind = [one for one in found if one.kind == kind]
        for one in of_kind[:MOST_SHOWN]:
            print(one)
        if len(of_kind) > MOST_SHOWN:
            print(f"{kind}: and {len(of_kind) - MOST_SHOWN} more")
