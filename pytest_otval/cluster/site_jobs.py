"""What nodes say of their site: a job of a minute in each partition, and what it found.

The job is a shell script that needs nothing of ours on the node, since whether that is there is what it asks. It writes
``NAME<tab>VALUE`` lines to storage that login node and nodes share; if there is none, that is an answer too.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from urllib.parse import urlsplit

from pytest_otval.cluster.probes import Probe
from pytest_otval.cluster.site_seen import Ask, Seen, ask_here
from pytest_otval.core import OtvalUsageError
from pytest_otval.profile import Profile, SlurmSection
from pytest_otval.sandbox.apptainer import FLAVOURS
from pytest_otval.sandbox.toolbox import ensure_toolbox
from pytest_otval.workspace import Workspace

START_SECONDS = 900.0
"""How long a job may wait in the queue before doctor gives it up."""
_POLL_SECONDS = 1.0

_SCRIPT = r"""#!/bin/bash
say() { printf '%s\t%s\n' "$1" "$2"; }
first_line() { head -n 1 | tr -d '\t'; }
can_write() { local f; f=$(mktemp "$1/.otval.XXXXXX" 2>/dev/null) && rm -f "$f"; }
say node "$(hostname)"
can_write WORKSPACE && say workspace ok
free=$(df -Pk "$TMPDIR" | awk 'NR == 2 { printf "%d", $4 / 1048576 }')
[ -n "$TMPDIR" ] && can_write "$TMPDIR" && say scratch "$TMPDIR: $free GiB free, $(stat -f -c %T "$TMPDIR")"
PLACES
unshare --user --map-root-user true 2>/dev/null && say namespaces ok
work=$(mktemp -d "${TMPDIR:-/tmp}/otval.XXXXXX")
try() {
    local name=$1 said
    shift
    mkdir "$work/$name"
    said=$(apptainer -s exec "$@" --containall --no-home --net --network none --overlay "$work/$name" TOOLBOX \
        /busybox sh -c '/busybox touch /otval && /busybox id -u' 2>&1)
    [ "$said" = 0 ] && say flavour "$name" || say "no $name" "$(first_line <<<"$said")"
}
FLAVOURS
rm -rf "$work"
PROXY
say end ok
"""


def look_from_jobs(profile: Profile, ask: Ask = ask_here) -> Iterator[Seen | Probe]:
    """Run a job in each partition of the profile and yield what nodes say.

    Raises OtvalUsageError without Slurm or a workspace, Conclusion where a program for the test container is missing.
    """
    if profile.slurm is None:
        raise OtvalUsageError(f"the profile {profile.name} has no [slurm], so there are no jobs to ask")
    workspace = Workspace.from_environment()
    workspace.cache.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="doctor-", dir=workspace.cache) as name:
        folder = Path(name)
        script = folder / "job.sh"
        script.write_text(job_script(profile, workspace, ensure_toolbox(workspace.images)))
        jobs = {name: _submit(profile.slurm, name, folder, ask) for name in profile.slurm.partitions}
        submitted = [job for job in jobs.values() if job]
        try:
            _wait(submitted, ask)
        finally:
            # Without their folder they have nothing to say.
            ask(["scancel", *submitted])
        for partition, job in jobs.items():
            if job is None:
                yield _miss(partition, "job", "sbatch refused it", "account, qos and options of [slurm]")
            else:
                output = folder / f"{partition}.out"
                said = output.read_text(errors="replace") if output.exists() else ""
                yield from read_answers(profile, partition, said)


def job_script(profile: Profile, workspace: Workspace, toolbox: Path) -> str:
    """Return the script: the same for all partitions."""
    places = [
        # What is a variable of the node, such as $TMPDIR, counts; else what it is where the job was submitted.
        f'[ -d "${{{place.variable}:-}}" ] || [ -d {quote(os.environ.get(place.variable) or "/nonexistent")} ]'
        if place.variable
        else f"[ -d {quote(place.path or '')} ]"
        for place in profile.storage.values()
    ]
    lines = {
        "WORKSPACE": quote(str(workspace.root)),
        "TOOLBOX": quote(str(toolbox)),
        "PLACES": "\n".join(
            f"{{ {test}; }} && say place {quote(name)}" for name, test in zip(profile.storage, places, strict=True)
        ),
        "FLAVOURS": "\n".join(
            f"try {' '.join(map(quote, (name, *FLAVOURS[name].flags)))}" for name in profile.sandbox.flavours
        ),
        "PROXY": "\n".join(_proxy_test(host, port) for host, port in _proxies(profile.slurm)),
    }
    return re.sub("|".join(lines), lambda match: lines[match[0]], _SCRIPT)


def _proxies(slurm: SlurmSection | None) -> list[tuple[str, int]]:
    variables = slurm.proxy_env if slurm else {}
    urls = [urlsplit(value) for name, value in variables.items() if name.lower() != "no_proxy"]
    return sorted({(url.hostname, url.port or 80) for url in urls if url.hostname})


def _proxy_test(host: str, port: int) -> str:
    connect = quote(f"exec 3<>/dev/tcp/{host}/{port}")
    return f"timeout 10 bash -c {connect} 2>/dev/null && say proxy {quote(f'{host}:{port}')}"


def _submit(slurm: SlurmSection, name: str, folder: Path, ask: Ask) -> str | None:
    partition = slurm.partitions[name]
    options = {
        "partition": name,
        "account": slurm.account,
        "qos": slurm.qos,
        "gres": f"{partition.gres}:1" if partition.gres else "",
        **slurm.options,
        "nodes": "1",
        "ntasks": "1",
        "cpus-per-task": str(partition.core_multiple),
        "time": "00:02:00",
        "job-name": "otval-doctor",
        "export": "NONE",
        "chdir": str(folder),
        "output": str(folder / f"{name}.out"),
    }
    words = [f"--{option}={value}" for option, value in options.items() if value]
    said = ask(["sbatch", "--parsable", *words, str(folder / "job.sh")])
    return said.strip().partition(";")[0] if said else None


def _wait(jobs: Sequence[str], ask: Ask) -> None:
    """Wait until no job is in the queue; those that do not start are taken out of it."""
    end = time.monotonic() + START_SECONDS
    while jobs and (ask(["squeue", "-h", "-o", "%T", "-j", ",".join(jobs)]) or "").strip():
        if time.monotonic() > end:
            ask(["scancel", "--state=PENDING", *jobs])
        time.sleep(_POLL_SECONDS)


def read_answers(profile: Profile, partition: str, said: str) -> Iterator[Seen | Probe]:
    """Yield what the job in a partition said."""
    lines = [(name, value) for name, tab, value in (line.partition("\t") for line in said.splitlines()) if tab]
    answers: Mapping[str, str] = dict(lines)
    if "end" not in answers:
        why = "the job did not run to its end, did not start, or its nodes do not see the workspace"
        yield _miss(partition, "job", why, "try `srun` there; the workspace has to be on storage that all nodes see")
        return
    yield Probe("site", f"{partition}: job", True, f"on {answers['node']}")
    yield _answer(partition, "workspace", answers, "the nodes cannot write to it", "move it to storage that they see")
    yield _answer(partition, "scratch", answers, "$TMPDIR is no folder of a job", "[scratch] path of the profile")
    yield _answer(partition, "namespaces", answers, "no user namespaces", "ask the site's administrators")
    flavours = [value for name, value in lines if name == "flavour"]
    refused = "; ".join(f"{name[3:]}: {value}" for name, value in lines if name.startswith("no "))
    if flavours:
        yield Probe("site", f"{partition}: containers", True, ", ".join(flavours))
    else:
        yield _miss(
            partition, "containers", refused, "ask the site's administrators for Apptainer with user namespaces"
        )
    if _proxies(profile.slurm):
        yield _answer(partition, "proxy", answers, "not reached", "proxy_env of [slurm]")
    there = [value for name, value in lines if name == "place"]
    yield Seen(("slurm", "partitions", partition, "mounts"), there, "a job")


def _answer(partition: str, name: str, answers: Mapping[str, str], detail: str, fix: str) -> Probe:
    if name in answers:
        return Probe("site", f"{partition}: {name}", True, answers[name])
    return _miss(partition, name, detail, fix)


def _miss(partition: str, name: str, detail: str, fix: str) -> Probe:
    return Probe("site", f"{partition}: {name}", False, detail, fix)
