"""The node's cores and memory, by the least of what is granted."""

import os

import pytest

from pytest_otval.profile import BudgetSection
from pytest_otval.sandbox.budget import Budget, node_budget

GIB = 1024


@pytest.fixture
def node(tmp_path, monkeypatch):
    """Return the budget of a node with 8 cores and 64 GiB."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 3, 4, 5, 6, 7, 10, 11})

    def budget(groups="", files=(), cpus=None, memory_mb=None, **environment):
        (tmp_path / "proc/self").mkdir(parents=True)
        (tmp_path / "proc/meminfo").write_text(f"MemFree: 1 kB\nMemTotal:  {64 * GIB * 1024} kB\n")
        (tmp_path / "proc/self/cgroup").write_text(groups)
        for name, text in dict(files).items():
            path = tmp_path / "sys/fs/cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return node_budget(BudgetSection(cpus=cpus, memory_mb=memory_mb), tmp_path, environment)

    return budget


def mib(gib):
    return int(gib * GIB * 1024**2)


def test_of_a_node_for_oneself(node):
    assert node() == Budget((2, 3, 4, 5, 6, 7, 10, 11), 62 * GIB)


def test_reserve_of_a_small_node(node):
    assert node("0::/\n", {"memory.max": f"{mib(16)}\n"}).memory_mb == 15 * GIB


@pytest.mark.parametrize(
    ("groups", "files", "gib"),
    [
        ("0::/user.slice/job\n", {"user.slice/job/memory.max": "max\n", "user.slice/memory.max": f"{mib(32)}\n"}, 32),
        ("0::/a/b\n", {"a/b/memory.max": f"{mib(16)}\n", "a/memory.max": f"{mib(32)}\n"}, 16),
        ("0::/../../other\n", {"memory.max": f"{mib(32)}\n"}, 32),
        ("0::/not/shown\n", {"memory.max": f"{mib(32)}\n"}, 32),
        ("4:cpu,memory:/slurm/1\n0::/\n", {"memory/slurm/1/memory.limit_in_bytes": f"{mib(32)}\n"}, 32),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, 64),
        ("4:cpu:/x\n", {"cpu/x/memory.limit_in_bytes": "1\n"}, 64),
        ("0::/a\n", {"a/memory.max": "none of this\n"}, 64),
    ],
)
def test_memory_of_control_groups(node, groups, files, gib):
    assert node(groups, files).memory_mb == gib * GIB - min(gib * GIB // 16, 2048)


@pytest.mark.parametrize(
    ("environment", "cores", "gib"),
    [
        ({"SLURM_CPUS_ON_NODE": "2", "SLURM_MEM_PER_NODE": "32768"}, 2, 32),
        ({"SLURM_CPUS_ON_NODE": "4", "SLURM_MEM_PER_CPU": "4096"}, 4, 16),
        ({"SLURM_MEM_PER_CPU": "2048"}, 8, 16),
        ({"SLURM_CPUS_ON_NODE": "64", "SLURM_MEM_PER_NODE": "0"}, 8, 64),
        ({"SLURM_CPUS_ON_NODE": "many"}, 8, 64),
    ],
)
def test_slurm(node, environment, cores, gib):
    budget = node(**environment)
    assert (len(budget.cores), budget.memory_mb) == (cores, gib * GIB - min(gib * GIB // 16, 2048))


def test_profile_only_lowers(node):
    assert node(cpus=3, memory_mb=5000) == Budget((2, 3, 4), 5000)


def test_profile_cannot_raise(node):
    assert node(cpus=300, memory_mb=10**9) == Budget((2, 3, 4, 5, 6, 7, 10, 11), 62 * GIB)


@pytest.mark.parametrize(("cores", "memory", "workers"), [(8, 62 * GIB, 8), (8, 5000, 2), (1, 99999, 1), (8, 100, 1)])
def test_workers(cores, memory, workers):
    assert Budget(tuple(range(cores)), memory).workers == workers


def test_of_this_machine():
    budget = node_budget(BudgetSection())
    assert set(budget.cores) <= os.sched_getaffinity(0)
    assert budget.memory_mb > 0
