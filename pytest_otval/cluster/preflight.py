"""Before anything is submitted: will shared storage take what the run leaves there?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.core import OtvalUsageError
from pytest_otval.images.inventory import Use, use_of
from pytest_otval.profile import Profile, StorageSection

FILES_OF_RUN = 24
"""Plans, records, scripts and folders."""
FILES_OF_JOB = 3
"""Ledger, evidence, Slurm's log."""
FILES_OF_SPENDING = 1
"""Of a job that asks models: what they cost."""
LIVES_OF_JOB = 1.5
"""Jobs that begin again leave files once more."""
BYTES_OF_ITEM = 40_000
"""Lines and packed evidence: a guess, five times what the evidence of a usual trial is (see ``evidence``)."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a run adds to shared storage."""

    files: int
    bytes: int


def expected(shards: int, items: int, packed_bytes: int, asks_models: bool = False) -> Expected:
    """Return what a run of so many shards and items adds; ``packed_bytes`` is what is packed for its jobs."""
    of_job = FILES_OF_JOB + FILES_OF_SPENDING * asks_models
    files = FILES_OF_RUN + round(shards * of_job * LIVES_OF_JOB)
    return Expected(files, items * BYTES_OF_ITEM + packed_bytes)


def require_room(profile: Profile, workspace: Path, run: Path, more: Expected) -> None:
    """Raise OtvalUsageError where what is there and what comes exceed a quota that the profile names.

    Quotas are of users: other files of theirs count too, which are not looked for. So a run that is let through here
    may still find no room.
    """
    found = _location(profile, run)
    if found is None:
        return
    name, section = found
    used = use_of(workspace)
    for words in _too_much(section, used, more):
        raise OtvalUsageError(
            f"{workspace} lies on {name}: {words}; remove old runs and images, or submit fewer --otval-shards"
        )


def require_visible(profile: Profile, partition: str, folder: Path) -> None:
    """Raise OtvalUsageError where the nodes of a partition do not see the storage on which a folder lies."""
    assert profile.slurm is not None
    found, mounts = _location(profile, folder), profile.slurm.partitions[partition].mounts
    if found is not None and mounts and found[0] not in mounts:
        raise OtvalUsageError(
            f"{folder} lies on {found[0]}, which nodes of the partition {partition} do not see: they see "
            f"{', '.join(mounts)}; choose another partition, or another workspace"
        )


def _too_much(section: StorageSection, used: Use, more: Expected) -> Iterator[str]:
    files = section.files_soft or section.files_hard
    if files is not None and used.files + more.files > files:
        yield f"{used.files:,} files are there and {more.files:,} come, of {files:,} that are allowed"
    gb = section.gb_soft or section.gb_hard
    if gb is not None and used.bytes + more.bytes > gb * 1e9:
        yield f"{used.bytes / 1e9:.1f} GB are there and {more.bytes / 1e9:.1f} GB come, of {gb:g} GB that are allowed"


def _location(profile: Profile, folder: Path) -> tuple[str, StorageSection] | None:
    """Return the storage of the site on which a folder lies: the innermost, if one lies in another."""
    real, found = Path(os.path.realpath(folder)), list[tuple[int, str, StorageSection]]()
    for name, section in profile.storage.items():
        place = section.path or os.environ.get(section.variable or "", "")
        if place and real.is_relative_to(os.path.realpath(place)):
            found.append((len(os.path.realpath(place)), name, section))
    return max(found)[1:] if found else None
