"""What this node, or our part of it, has for containers: cores and memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pytest_otval.profile import BudgetSection

WORKER_MEMORY_MB = 2048
"""What ``-n auto`` reckons for one task; Harbor has no default for ``memory_mb``."""

_MIB = 1024 * 1024
_RESERVE = 16
"""One part in this many of the memory is left to pytest's own processes, at most:"""
_MOST_RESERVED_MB = 2048


@dataclass(frozen=True, slots=True)
class Budget:
    """What all containers of a node together may use."""

    cores: tuple[int, ...]
    """Numbers of the cores, as in an affinity mask."""
    memory_mb: int
    """MiB."""

    @property
    def workers(self) -> int:
        """How many tasks of a usual size run beside each other."""
        return max(1, min(len(self.cores), self.memory_mb // WORKER_MEMORY_MB))


def node_budget(section: BudgetSection, root: Path = Path("/"), environment: Mapping[str, str] = os.environ) -> Budget:
    """Return the node's budget: the least of what the kernel, a control group, Slurm and the profile grant.

    ``root`` is where /proc and /sys are found.
    """
    ours = sorted(os.sched_getaffinity(0))
    count = _least(len(ours), _number(environment.get("SLURM_CPUS_ON_NODE")), section.cpus)
    total = _total_memory(root) // _MIB
    slurm = _number(environment.get("SLURM_MEM_PER_NODE"))
    per_cpu = _number(environment.get("SLURM_MEM_PER_CPU"))
    if slurm is None and per_cpu is not None:
        slurm = per_cpu * (_number(environment.get("SLURM_CPUS_ON_NODE")) or count)
    groups = (limit // _MIB for limit in _group_limits(root))
    memory = _least(total, slurm, *groups)
    memory -= min(memory // _RESERVE, _MOST_RESERVED_MB)
    return Budget(tuple(ours[:count]), _least(memory, section.memory_mb))


def _least(*limits: int | None) -> int:
    return max(1, min(limit for limit in limits if limit is not None))


def _number(text: str | None) -> int | None:
    """Return a number above 0; Slurm says 0 for all of a node's memory."""
    return int(text) if text is not None and text.isdecimal() and int(text) > 0 else None


def _total_memory(root: Path) -> int:
    for line in (root / "proc" / "meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    raise ValueError("/proc/meminfo has no MemTotal")


def _group_limits(root: Path) -> Iterator[int]:
    """Yield the memory limits of this process's control groups, in bytes (cgroups(7)), each with those above it."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    groups = root / "sys/fs/cgroup"
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            yield from _limits_along(groups, path, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _limits_along(groups / "memory", path, "memory.limit_in_bytes")


def _limits_along(top: Path, path: str, name: str) -> Iterator[int]:
    """A container sees only a part of the tree, so what is not there is passed over."""
    group = PurePosixPath(path.strip("/"))
    if ".." in group.parts:
        group = PurePosixPath()
    for folder in (group, *group.parents):
        try:
            text = (top / folder / name).read_text().strip()
        except OSError:
            continue
        if text.isdecimal() and int(text) > 0:
            yield int(text)
