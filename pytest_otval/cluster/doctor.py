"""``python -m pytest_otval doctor``: what this machine can do, and what to do about what it cannot."""

from __future__ import annotations

import datetime
import json
import os
import platform
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pytest_otval.cluster.image_store import quota_lines
from pytest_otval.cluster.probes import FlavourProbes, Probe, probe_device, probe_disk, probe_programs
from pytest_otval.cluster.site_changes import compare, propose
from pytest_otval.cluster.site_jobs import look_from_jobs
from pytest_otval.cluster.site_seen import look
from pytest_otval.core import Conclusion
from pytest_otval.images.inventory import use_of
from pytest_otval.profile import Profile, load_profile, profile_file
from pytest_otval.sandbox.apptainer import FLAVOURS, ApptainerSandbox
from pytest_otval.sandbox.leftovers import OwnScratch, sweep
from pytest_otval.sandbox.namespace import FilesOfContainers
from pytest_otval.sandbox.toolbox import ensure_toolbox
from pytest_otval.workspace import Workspace, scratch

_SCRATCH_GIB, _WORKSPACE_GIB, _TMP_GIB = 5, 5, 1


def run_doctor(cluster: str, as_json: bool, jobs: bool = False) -> int:
    """Probe the machine under a cluster profile, and its site where it has one, and print the answers.

    ``jobs`` also asks nodes, by a job in each partition. What the site says otherwise than the profile is proposed as a
    change of its file. Returns 0 if trials can run in at least one flavour, else 1. Raises OtvalUsageError for a wrong
    profile.
    """
    profile = load_profile(cluster)
    seen = [*look(profile), *(look_from_jobs(profile) if jobs else ())]
    site, changes = compare(profile, seen)
    probes = [*_machine(profile), *_flavours(profile), *site]
    source = f"doctor on {platform.node()}"
    proposed = propose(profile_file(cluster), changes, source, datetime.date.today().isoformat())
    usable = usable_flavours(probes)
    # Only a flavour that works can delete what its containers wrote.
    swept = (
        sweep(scratch(profile.scratch.path), FilesOfContainers(FLAVOURS[usable[0]].maps_uids).remove) if usable else []
    )
    if as_json:
        answer = {
            "cluster": profile.name,
            "usable": usable,
            "swept": swept,
            "probes": [asdict(probe) for probe in probes],
            "proposed": proposed,
        }
        print(json.dumps(answer, indent=2))
    else:
        _print(probes, usable, swept)
        if proposed:
            print(f"\nwhat the site says otherwise, as a change of its profile:\n\n{proposed}", end="")
    return 0 if usable else 1


def usable_flavours(probes: Sequence[Probe]) -> list[str]:
    """Return the flavours that can run trials: something was asked, and nothing that is needed was missed."""
    asked = dict.fromkeys(probe.area for probe in probes if probe.area in FLAVOURS)
    missed = {probe.area for probe in probes if probe.needed and not probe.ok}
    return [name for name in asked if name not in missed]


def _machine(profile: Profile) -> Iterator[Probe]:
    yield from probe_programs()
    yield probe_device(Path("/dev/fuse"), "images")
    yield probe_device(Path("/dev/net/tun"), "public network")
    yield probe_disk("scratch", scratch(profile.scratch.path), _SCRATCH_GIB)
    workspace = os.environ.get("OT_WORKSPACE", "")
    if workspace:
        yield probe_disk("workspace", Path(workspace), _WORKSPACE_GIB)
        if profile.quota.files or profile.quota.gb:
            for is_much, line in quota_lines(use_of(Workspace(Path(workspace)).images), profile.quota):
                yield Probe(
                    "disk", "images", not is_much, line, "image gc removes what nothing needs" if is_much else ""
                )
    else:
        yield Probe("disk", "workspace", False, "OT_WORKSPACE is not set", "./setup.sh WORKSPACE, then source env.sh")
    yield probe_disk("/tmp", Path("/tmp"), _TMP_GIB)


def _flavours(profile: Profile) -> Iterator[Probe]:
    own = OwnScratch(scratch(profile.scratch.path))
    try:
        with tempfile.TemporaryDirectory(dir=own.folder) as folder:
            toolbox = ensure_toolbox(Path(folder))
            for name in profile.sandbox.flavours:
                sandbox = ApptainerSandbox(FLAVOURS[name], toolbox, own, profile.network.public)
                yield from FlavourProbes(sandbox, toolbox, own).run()
    except Conclusion as conclusion:
        yield Probe("machine", "sandbox", False, conclusion.headline, "see the programs above", needed=True)
    finally:
        own.close()


def _print(probes: Sequence[Probe], usable: Sequence[str], swept: Sequence[str]) -> None:
    console = Console()
    table = Table("area", "probe", "", "what was found", box=None, pad_edge=False)
    for number, probe in enumerate(probes):
        new_area = number == 0 or probes[number - 1].area != probe.area
        answer = "[green]ok[/]" if probe.ok else "[red]miss[/]" if probe.needed else "[yellow]miss[/]"
        found = probe.detail if probe.ok else f"{probe.detail}\nto do: {probe.fix}"
        table.add_row(probe.area if new_area else "", probe.name, answer, Text(found))
    console.print(table)
    for line in swept:
        console.print(f"swept what an earlier run left: {line}", markup=False)
    if usable:
        console.print(f"trials can run here: {', '.join(usable)}", markup=False)
    else:
        console.print("trials cannot run here: no flavour has all that is needed", markup=False)
