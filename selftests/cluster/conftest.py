"""Fixtures of runs given to a real Slurm."""

import itertools
import os
import sys
from pathlib import Path

import pytest

from pytest_otval.cluster import job as job_module
from selftests.cluster.nodes import Node
from selftests.cluster.submitted import Site, inner

_numbers = itertools.count()


@pytest.fixture(scope="session")
def shared_site(localslurm):
    """One workspace for all tests: the environment is packed once."""
    if not Path(os.path.realpath(sys._base_executable)).is_relative_to("/usr"):
        words = "the nodes see the system's Python alone: ./setup.sh WORKSPACE --python /usr/bin/python3"
        pytest.fail(words) if os.environ.get("CI") else pytest.skip(words)
    return Site.make(localslurm, "site")


@pytest.fixture
def site(shared_site):
    yield shared_site
    for process in shared_site.processes:
        if process.poll() is None:
            inner(process).kill()
            process.communicate()
    shared_site.processes.clear()
    shared_site.variables.clear()
    for name in shared_site.root.glob("*.began"):
        name.with_suffix(".go").touch()
        name.unlink()
    user = shared_site.slurm.user
    shared_site.slurm.run("scancel", "--quiet", f"--user={user}")
    shared_site.slurm.until(lambda: not shared_site.slurm.run("squeue", "-h", f"--user={user}").stdout.strip())
    for name in shared_site.root.glob("*.go"):
        name.unlink()


@pytest.fixture
def run(site):
    return site.run(f"run{next(_numbers)}")


@pytest.fixture
def node(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(job_module, "SHIP_SECONDS", 0.05)
    return Node(tmp_path)
