"""What set-up makes in advance, as the cluster profile's ``[setup] prepare`` names it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pytest_otval.profile import load_profile
from pytest_otval.sandbox.toolbox import ensure_toolbox
from pytest_otval.settings import RunSettings, Settings, VerdictSettings
from pytest_otval.stages.machine import Machine, own_extensions, probe_flavour
from pytest_otval.workspace import Workspace

_RECIPE = "image:bootstrap:"


def prepare(cluster: str) -> None:
    """Make what the profile names and is not there yet; what is there costs a look.

    Raises OtvalUsageError for a wrong profile and Conclusion for what could not be made.
    """
    profile = load_profile(cluster)
    workspace = Workspace.from_environment()
    ensure_toolbox(workspace.images)
    recipes = [item.removeprefix(_RECIPE) for item in profile.setup.prepare if item.startswith(_RECIPE)]
    if not recipes:
        return
    flavour, _ = probe_flavour(workspace, profile)
    with tempfile.TemporaryDirectory() as run:
        settings = Settings(RunSettings(Path(run), cluster), VerdictSettings(flavour=flavour))
        machine = Machine(settings, workspace, profile, own_extensions())
        try:
            for recipe in recipes:
                image = machine.images.ensure_recipe(recipe)
                print(f"{image.base}: {image.path}")
        finally:
            machine.close()
