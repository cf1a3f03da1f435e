"""What a job copies to its node's own disk before it runs anything, each file with its checksum.

``staging.json`` of the run folder names what all jobs need; images are those of the job's items alone. The node gets a
workspace of its own: datasets, runtimes and the profile are copies, and ``images`` leads to the shared store, where an
image that a job makes is published for all. Trials run on copies of images.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pytest_otval.cluster.packing import Packed
from pytest_otval.core import OtvalUsageError
from pytest_otval.images.locks import write_whole
from pytest_otval.images.record import read_record
from pytest_otval.images.staging import staging_of
from pytest_otval.profile import Profile

FILE = "staging.json"
_BLOCK = 4 << 20


class StagingError(Exception):
    """The node could not be made ready; one line."""


@dataclass(frozen=True, slots=True)
class Staging:
    """What all jobs of a run need."""

    environment: Packed
    datasets: Mapping[str, tuple[Packed, ...]]
    """By name: dataset.toml and the files of packed tasks."""
    runtimes: tuple[Packed, ...]
    """Files of the runtime cache."""
    images: str
    """The shared image store."""
    profile: Packed
    models: str = ""
    """Where weights are that jobs serve."""

    @property
    def bytes(self) -> int:
        """What each job copies besides images."""
        files = (self.environment, self.profile, *self.runtimes)
        return sum(one.bytes for one in (*files, *(file for files in self.datasets.values() for file in files)))


def write_staging(run: Path, staging: Staging) -> None:
    """Write it into a run folder. Raises OSError."""
    write_whole(run / FILE, (json.dumps(asdict(staging), indent=1) + "\n").encode())


def read_staging(run: Path) -> Staging:
    """Return what the run folder names. Raises OtvalUsageError where that is nothing we wrote."""
    try:
        values = json.loads((run / FILE).read_bytes())
        return Staging(
            Packed(**values["environment"]),
            {name: tuple(Packed(**one) for one in files) for name, files in values["datasets"].items()},
            tuple(Packed(**one) for one in values["runtimes"]),
            str(values["images"]),
            Packed(**values["profile"]),
            str(values.get("models", "")),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise OtvalUsageError(f"{run} was not submitted: it has no {FILE} that can be read") from None


def make_workspace(staging: Staging, workspace: Path) -> None:
    """Make the node's workspace, a new folder. Raises StagingError."""
    try:
        for name, files in staging.datasets.items():
            for one in files:
                copy(one, workspace / "datasets" / name)
        for one in staging.runtimes:
            copy(one, workspace / "runtimes")
        copy(staging.profile, workspace / "clusters")
        (workspace / "images").symlink_to(staging.images)
    except OSError as error:
        raise StagingError(f"{workspace} cannot be filled: {error.strerror or error}") from None


def copy(file: Packed, folder: Path) -> Path:
    """Copy a file into a folder and return its new path. Raises StagingError."""
    source, target, digest = Path(file.path), folder / Path(file.path).name, hashlib.sha256()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with source.open("rb") as old, target.open("xb") as new:
            while block := old.read(_BLOCK):
                digest.update(block)
                new.write(block)
    except OSError as error:
        raise StagingError(f"{source} cannot be copied to {folder}: {error.strerror}") from None
    if digest.hexdigest() != file.sha256:
        raise StagingError(f"{source} does not match its checksum")
    return target


def copy_images(keys: Iterable[str], store: Path, profile: Profile) -> int:
    """Copy the images of a job's items to the node, where trials look for them; return how many files that are.

    One that is not made yet is passed over, and where the profile or a full disk says so, trials read the store.
    Raises Conclusion ``base-unavailable`` where the store's file is damaged.
    """
    staged = staging_of(profile, store)
    if staged is None:
        return 0
    files: dict[str, None] = {}
    for key in keys:
        record = read_record(store, key)
        if record is not None:
            files.update(dict.fromkeys((*record.below, key)))
    return sum(staged.fetch(store, key) for key in files)
