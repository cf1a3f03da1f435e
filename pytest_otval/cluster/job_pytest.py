"""How a job calls pytest on its node."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pytest_otval.cluster.request import Request
from pytest_otval.profile import Profile

CONTRACT = "contract.json"


def environment(folder: Path, request: Request, profile: Profile, models: str) -> dict[str, str]:
    """Return what changes in the environment of a job; ``models`` is the store of weights."""
    slurm = profile.slurm
    proxy = dict(slurm.proxy_env) if slurm is not None and slurm.job_network == "proxy" else {}
    return {
        **proxy,
        "PATH": f"{folder}/env/bin:{os.environ.get('PATH', '/usr/local/bin:/usr/bin:/bin')}",
        "OT_WORKSPACE": str(folder / "ws"),
        "OT_CLUSTER": request.profile,
        "OT_RUNTIME_CACHE": str(folder / "ws" / "runtimes"),
        "OT_MODELS": models,
        "OT_SCRATCH": str(folder / "scratch"),
    }


def without_traces(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of pytest: nothing of the shell that submitted, or of another pytest, decides there."""
    traces = ("PYTEST_", "COV_", "COVERAGE_", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "SLURM_EXPORT_ENV")
    return {name: value for name, value in environment.items() if not name.startswith(traces)}


def command(folder: Path, request: Request, shard: str, out: Path) -> list[str]:
    """Return the words; ``shard`` is as ``--otval-shard`` has it, ``out`` the run folder on the node."""
    return [
        str(folder / "env" / "bin" / "pytest"),
        f"--otval-contract={folder / CONTRACT}",
        f"--otval-shard={shard}",
        f"--otval-out={out}",
        f"--otval-cluster={request.profile}",
        f"--rootdir={folder / 'ws'}",
        "-n",
        str(request.cpus),
        "-q",
        "-p",
        "no:cacheprovider",
        *request.models.options(),
        *(word for name in request.plugins for word in ("-p", name)),
    ]
