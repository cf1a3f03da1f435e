"""What is asked of Slurm for each job of a run, made from the profile and what the user chose."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pytest_otval.cluster.shards import Limits
from pytest_otval.cluster.site_shell import site_shell
from pytest_otval.core import OtvalUsageError
from pytest_otval.images.locks import write_whole
from pytest_otval.profile import PartitionSection, Profile
from pytest_otval.profile.slurm import seconds_of

FILE = "request.json"
USUAL_SECONDS = 4 * 3600
"""Time limit where none is chosen and the partition allows as much."""


@dataclass(frozen=True, slots=True)
class Models:
    """What jobs are told of the models that make attempts."""

    names: tuple[str, ...] = ()
    base_url: str = ""
    """Where they are asked; empty: where the profile says."""
    budget_tokens: int = 0
    """What all jobs together may spend; 0: as much as they do."""
    budget_usd: float = 0.0
    key_variables: tuple[str, ...] = ()
    """Of the shell that submits, whose values jobs get. Only names are ever written down."""
    served: tuple[str, ...] = ()
    """Those that each job serves to its own attempts."""

    def options(self) -> list[str]:
        """Return the options that tell pytest."""
        given = {
            "--otval-base-url": self.base_url,
            "--otval-budget-tokens": self.budget_tokens,
            "--otval-budget-usd": self.budget_usd,
        }
        return [f"{option}={value}" for option, value in given.items() if value]


NO_MODELS = Models()


@dataclass(frozen=True, slots=True)
class Request:
    """The same for all jobs of a run."""

    profile: str
    partition: str
    cpus: int
    """Cores of a job, and its pytest workers."""
    seconds: int
    """Time limit."""
    signal_seconds: int
    """How long before its end a job is told."""
    memory_mb: int | None = None
    """None: what the partition gives to as many cores."""
    account: str = ""
    qos: str = ""
    gres: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    """Further long options of sbatch."""
    setup: tuple[str, ...] = ()
    """Lines of shell that come first on a node."""
    plugins: tuple[str, ...] = ()
    """What ``-p`` names: modules that jobs load, too."""
    by_contract: bool = False
    """Whether the user gave a contract, which then is to be kept."""
    models: Models = NO_MODELS

    @property
    def item_seconds(self) -> int:
        """How long a job runs before it starts no more items."""
        return self.seconds - self.signal_seconds


def make_request(
    profile: Profile,
    partition: str = "",
    cpus: int = 0,
    time: str = "",
    plugins: Sequence[str] = (),
    models: Models = NO_MODELS,
) -> Request:
    """Return the request for a partition; what is empty or 0 is chosen here.

    Raises OtvalUsageError for what the profile says that the site does not have.
    """
    slurm = profile.slurm
    if slurm is None:
        raise OtvalUsageError(f"the profile {profile.name!r} has no [slurm]: it is no cluster to submit to")
    name, section = slurm.choose(partition)
    serving = [profile.models[model].serve for model in models.served]
    gpus = sum(one.gpus for one in serving)
    cpus = _cpus(name, section, cpus, gpus, sum(one.cpus for one in serving))
    seconds = _seconds(name, section, time, slurm.signal_seconds)
    share = None if section.memory_mb is None else section.memory_mb * cpus // section.cores
    return Request(
        profile.name,
        name,
        cpus,
        seconds,
        slurm.signal_seconds,
        share,
        slurm.account,
        slurm.qos,
        _gres(name, section, cpus, gpus),
        dict(slurm.options),
        tuple(site_shell(profile).splitlines()),
        tuple(plugins),
        models=models,
    )


def limits(profile: Profile, request: Request) -> Limits:
    """Return what bounds the number of a run's shards."""
    assert profile.slurm is not None
    most = min(profile.slurm.max_array, profile.slurm.max_submitted or profile.slurm.max_array)
    return Limits(request.cpus, request.item_seconds, most)


def _cpus(name: str, section: PartitionSection, cpus: int, gpus: int, taken: int) -> int:
    """Return the cores of a job; servers of models have GPUs, and take cores of it."""
    multiple = section.core_multiple
    least = math.ceil((taken + 1) / multiple) * multiple
    chosen = cpus or max((section.cores_per_gpu or multiple) * max(1, gpus), least)
    if chosen <= taken:
        raise OtvalUsageError(f"--otval-cpus {chosen}: servers of models take {taken}, and attempts need more")
    if chosen % multiple or chosen > section.cores:
        raise OtvalUsageError(
            f"--otval-cpus {chosen}: jobs of the partition {name} have a multiple of {multiple} cores, "
            f"at most {section.cores}"
        )
    return chosen


def _seconds(name: str, section: PartitionSection, time: str, signal_seconds: int) -> int:
    most = section.max_seconds
    if not time:
        return USUAL_SECONDS if most is None else min(most, USUAL_SECONDS)
    try:
        seconds = seconds_of(time)
    except ValueError as error:
        raise OtvalUsageError(f"--otval-time: {error}") from None
    if most is not None and seconds > most:
        raise OtvalUsageError(f"--otval-time {time}: the longest of the partition {name} is {section.max_time}")
    # Slurm counts in minutes.
    if seconds < max(60, signal_seconds + 1):
        raise OtvalUsageError(
            f"--otval-time {time} is too short: a job starts no more items {signal_seconds} s before its end"
        )
    return math.ceil(seconds / 60) * 60


def _gres(name: str, section: PartitionSection, cpus: int, gpus: int) -> str:
    if gpus > section.gpus or (gpus and not section.gres):
        words = f"models that jobs serve need {gpus} GPUs, and nodes of the partition {name} have {section.gpus}"
        raise OtvalUsageError(f"{words}: choose another --otval-partition")
    if not section.gres:
        return ""
    count = math.ceil(cpus / section.cores_per_gpu) if section.cores_per_gpu else 1
    return f"{section.gres}:{max(count, gpus)}"


def _models(values: Mapping[str, Any]) -> Models:
    lists: dict[str, Any] = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return Models(**{**values, **lists})


def write_request(run: Path, request: Request) -> None:
    """Write it into a run folder. Raises OSError."""
    write_whole(run / FILE, (json.dumps(asdict(request), indent=1) + "\n").encode())


def read_request(run: Path) -> Request:
    """Return the request of a run folder. Raises OtvalUsageError where there is none that we wrote."""
    try:
        values = json.loads((run / FILE).read_bytes())
        lists = {name: tuple(values[name]) for name in ("setup", "plugins")}
        return Request(**{**values, **lists, "models": _models(values.get("models", {}))})
    except (OSError, ValueError, KeyError, TypeError):
        raise OtvalUsageError(f"{run} was not submitted: it has no {FILE} that can be read") from None
