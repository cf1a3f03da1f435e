"""``[slurm]``: how jobs are asked for at a site, and what it allows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from pytest_otval.core import OtvalUsageError
from pytest_otval.profile.section import Count, Name, NameOrEmpty, Section, Variable

_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<hours>\d{1,2}):(?P<minutes>[0-5]\d):(?P<seconds>[0-5]\d)")
_OPTION = re.compile(r"[a-z][a-z0-9-]*")
_GRES = re.compile(r"[a-z]\w*(?::[A-Za-z]\w*)?", re.ASCII)
_ONE_WORD = re.compile(r"[!-~]+")


def seconds_of(time: str) -> int:
    """Return the seconds of a time limit as ``HH:MM:SS`` or ``D-HH:MM:SS``. Raises ValueError for anything else."""
    match = _TIME.fullmatch(time)
    if match is None:
        raise ValueError(f"{time!r} is no time as HH:MM:SS or D-HH:MM:SS")
    days, hours, minutes, seconds = (int(match[part] or 0) for part in ("days", "hours", "minutes", "seconds"))
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _time(text: str) -> str:
    seconds_of(text)
    return text


def _option(text: str) -> str:
    if not _OPTION.fullmatch(text):
        raise ValueError(f"{text!r} is no long option of sbatch without its dashes, such as constraint")
    return text


def _one_word(text: str) -> str:
    if not _ONE_WORD.fullmatch(text):
        raise ValueError(f"{text!r} must be one word of printable ASCII")
    return text


def _gres(text: str) -> str:
    if text and not _GRES.fullmatch(text):
        raise ValueError(f"{text!r} is no generic resource without its number, such as gpu or gpu:h100")
    return text


OneWord = Annotated[str, AfterValidator(_one_word)]


class PartitionSection(Section):
    """One ``[slurm.partitions.NAME]``: the nodes of a partition, all alike."""

    cores: Count
    """Cores of a node."""
    core_multiple: Count = 1
    """A job's cores are a multiple of this."""
    memory_mb: Count | None = None
    """Memory of a node that jobs can have, in MiB; None where it is not known."""
    gpus: Annotated[int, Field(ge=0)] = 0
    """GPUs of a node."""
    cores_per_gpu: Count | None = None
    """Cores that one GPU brings, at most."""
    gres: Annotated[str, AfterValidator(_gres)] = ""
    """What a job asks for to get a GPU, without its number, such as ``gpu:h100``; empty: jobs ask for none."""
    max_time: Annotated[str, AfterValidator(_time)] | None = None
    """Longest time limit of a job, ``HH:MM:SS`` or ``D-HH:MM:SS``; None where there is none."""
    preemptible: bool = False
    """Whether jobs of others may end a job, which then is queued again."""
    mounts: tuple[str, ...] = ()
    """Names of ``[storage]`` that its nodes see."""

    @model_validator(mode="after")
    def _consistent(self) -> PartitionSection:
        if self.core_multiple > self.cores:
            raise ValueError(f"core_multiple {self.core_multiple} is more than the {self.cores} cores of a node")
        if self.cores_per_gpu and not self.gres:
            raise ValueError("cores_per_gpu says nothing without gres")
        return self

    @property
    def max_seconds(self) -> int | None:
        """Longest time limit of a job in seconds; None where there is none."""
        return None if self.max_time is None else seconds_of(self.max_time)


class SlurmSection(Section):
    """``[slurm]``."""

    partition: NameOrEmpty = ""
    """The partition of jobs that name none; empty: they have to."""
    account: NameOrEmpty = ""
    """Empty: none is asked for, as with ``qos``."""
    qos: NameOrEmpty = ""
    options: Mapping[Annotated[str, AfterValidator(_option)], OneWord] = {}
    """Further long options of sbatch, without their dashes, to their values."""
    build_on: Literal["login", "job"] = "login"
    """Where images are built: before the jobs where they are submitted, or in the jobs."""
    job_network: Literal["none", "proxy"] = "none"
    """What jobs reach outside the cluster: nothing, or what the proxy of ``proxy_env`` lets through."""
    proxy_env: Mapping[Variable, OneWord] = {}
    """Variables, with their values, that builds in jobs get besides ``[build] pass_env``; no trial gets them."""
    trial_step: Literal["srun", "none"] = "none"
    """``srun``: each trial is a job step of its own, so that Slurm enforces its memory."""
    max_array: Count = 1000
    """Elements that an array may have (``MaxArraySize`` less one)."""
    max_submitted: Count | None = None
    """Jobs, each element of an array counted, that a user may have in the queue; None where there is no limit."""
    container_starts: Count | None = None
    """Containers that may start at the same time on a node; None where there is no limit."""
    signal_seconds: Count = 120
    """How long before its time limit a job gets USR2. Slurm looks at limits about twice a minute."""
    partitions: Annotated[Mapping[Name, PartitionSection], Field(min_length=1)]

    @model_validator(mode="after")
    def _consistent(self) -> SlurmSection:
        if self.partition and self.partition not in self.partitions:
            raise ValueError(
                f"[slurm] partition is {self.partition!r}, but there is no [slurm.partitions.{self.partition}]"
            )
        if self.job_network == "proxy" and not self.proxy_env:
            raise ValueError("[slurm] job_network is 'proxy', but proxy_env names none")
        return self

    def choose(self, name: str = "") -> tuple[str, PartitionSection]:
        """Return the partition ``name``, the default one if empty. Raises OtvalUsageError where there is none."""
        chosen = name or self.partition
        if chosen in self.partitions:
            return chosen, self.partitions[chosen]
        known = ", ".join(sorted(self.partitions))
        if not chosen:
            raise OtvalUsageError(f"the profile has no default partition: choose one of {known}")
        raise OtvalUsageError(f"the profile knows no partition {chosen!r}; known: {known}")
