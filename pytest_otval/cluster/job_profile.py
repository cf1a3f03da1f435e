"""The profile as jobs read it: one file of its own, with what is different on a node."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit

from pytest_otval.images.locks import write_whole
from pytest_otval.profile import Profile

FOLDER = "profile"


def write_job_profile(run: Path, profile: Profile) -> Path:
    """Write the profile for jobs into a run folder and return its file. Raises OSError.

    Trials run on copies of images unless the site wants none, and builds get the variables of the site's proxy.
    """
    values = _plain(profile.model_dump(mode="json", exclude_unset=True, exclude={"name", "facts"}))
    scratch = values.setdefault("scratch", {})
    if profile.scratch.stage_images == "auto":
        scratch["stage_images"] = "always"
    if profile.slurm is not None and profile.slurm.job_network == "proxy":
        names = (*profile.build.pass_env, *profile.slurm.proxy_env)
        values.setdefault("build", {})["pass_env"] = list(dict.fromkeys(names))
    file = run / FOLDER / f"{profile.name}.toml"
    file.parent.mkdir(exist_ok=True)
    write_whole(file, tomlkit.dumps(values).encode())
    return file


def set_addresses(file: Path, urls: Mapping[str, str]) -> None:
    """Write into a job's own copy of the profile where its servers are, by model. Raises OSError."""
    values = tomlkit.parse(file.read_text(encoding="utf-8")).unwrap()
    for name, url in urls.items():
        values["models"][name]["base_url"] = url
        del values["models"][name]["serve"]
    write_whole(file, tomlkit.dumps(values).encode())


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Return values as TOML has them, which knows no None."""
    return {
        name: _plain(value) if isinstance(value, dict) else value for name, value in values.items() if value is not None
    }
