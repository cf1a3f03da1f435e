"""A submitted run that is over goes on in its folder: what has no answer, or an error for one, is submitted again."""

from __future__ import annotations

import shutil
from pathlib import Path

from pytest_otval.cluster.job import STOPPED
from pytest_otval.cluster.job_pytest import CONTRACT
from pytest_otval.cluster.journal import Journal
from pytest_otval.cluster.preparing import PACKED
from pytest_otval.cluster.request import read_request
from pytest_otval.cluster.shards import read_plan
from pytest_otval.cluster.states import Slurm, SlurmUnreachableError
from pytest_otval.cluster.submission import Element, arrays_of
from pytest_otval.cluster.watch import CANCELLED
from pytest_otval.contract.compare import HARMLESS, differences
from pytest_otval.contract.file import read_contract
from pytest_otval.contract.model import Contract
from pytest_otval.core import OtvalUsageError


def require_resumable(run: Path, contract: Contract) -> Contract:
    """Return the contract of a submitted run that can go on. Raises OtvalUsageError.

    ``contract`` is what is selected here and now; answers to other questions cannot stand beside those there are.
    """
    read_request(run)
    kept = read_contract(run / CONTRACT)
    found = [one for one in differences(kept, contract) if one.kind not in HARMLESS]
    if found:
        words = f"{len(found)} differences from what it ran, such as {found[0]}: begin a new run"
        raise OtvalUsageError(f"--otval-resume {run}: {words}")
    try:
        known = Slurm(run.name).states([array.number for array in arrays_of(run)])
    except SlurmUnreachableError as error:
        raise OtvalUsageError(f"--otval-resume {run}: Slurm does not answer: {error}") from None
    if any(state.phase != "over" for state in known.values()):
        words = "its jobs are not over: `python -m pytest_otval attach` waits for them, `cancel` ends them"
        raise OtvalUsageError(f"--otval-resume {run}: {words}")
    return kept


def reopen(run: Path) -> list[Element]:
    """Take back what ended a run, and return what is to be submitted of each shard. Raises OtvalUsageError, OSError."""
    for name in (CANCELLED, STOPPED):
        (run / name).unlink(missing_ok=True)
    # It is packed anew.
    shutil.rmtree(run / PACKED, ignore_errors=True)
    journal = Journal(run, len(arrays_of(run)))
    done = {str(line["id"]) for line in journal.read()}
    ids = [item.id for item in read_contract(run / CONTRACT).items()]
    left = [tuple(number for number in numbers if ids[number] not in done) for numbers in read_plan(run)]
    return [Element(shard, numbers) for shard, numbers in enumerate(left) if numbers]
