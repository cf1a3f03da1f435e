"""What set-up makes in advance, as the cluster profile's ``[setup] prepare`` names it."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from pytest_otval.profile import Profile, load_profile
from pytest_otval.sandbox.toolbox import ensure_toolbox
from pytest_otval.settings import Attempts, RunSettings, Settings, VerdictSettings
from pytest_otval.stages.machine import Extensions, Machine, own_extensions, probe_flavour
from pytest_otval.workspace import Workspace

_RECIPE = "image:bootstrap:"


def run(arguments: argparse.Namespace) -> int:
    """Carry out `image prepare`."""
    prepare(arguments.cluster)
    return 0


def prepare(cluster: str) -> None:
    """Make what the profile names and is not there yet; what is there costs a look.

    Raises OtvalUsageError for a wrong profile and Conclusion for what could not be made.
    """
    profile = load_profile(cluster)
    workspace = Workspace.from_environment()
    ensure_toolbox(workspace.images)
    recipes = prepared_recipes(profile)
    if not recipes:
        return
    flavour, _ = probe_flavour(workspace, profile)
    with opened_machine(workspace, profile, flavour) as machine:
        for recipe in recipes:
            image = machine.images.ensure_recipe(recipe)
            print(f"{image.base}: {image.files[-1]}")


def prepared_recipes(profile: Profile) -> list[str]:
    """Return the recipes whose images set-up makes."""
    return [item.removeprefix(_RECIPE) for item in profile.setup.prepare if item.startswith(_RECIPE)]


@contextmanager
def opened_machine(
    workspace: Workspace,
    profile: Profile,
    flavour: str,
    offline: bool = False,
    extensions: Extensions | None = None,
    verdict: VerdictSettings | None = None,
    attempts: Attempts | None = None,
) -> Iterator[Machine]:
    """Give what a command that is no test run needs of the machine; nothing of it is kept."""
    with tempfile.TemporaryDirectory() as run:
        verdict = verdict or VerdictSettings(flavour=flavour, network="none" if offline else "task")
        settings = Settings(RunSettings(Path(run), profile.name, **asdict(attempts or Attempts())), verdict)
        machine = Machine(settings, workspace, profile, extensions or own_extensions())
        try:
            yield machine
        finally:
            machine.close()
