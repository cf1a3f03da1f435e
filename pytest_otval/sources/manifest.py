"""dataset.toml of what is published: Harbor's manifest with digests, and the settings under which tasks were asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from pytest_otval.core import OtvalUsageError, printable
from pytest_otval.sources.published import Published
from pytest_otval.task.dataset import DATASET_TOML, OF_SOURCES, PACKAGE_NAME

OWNER = "otval"
"""Of names that have none."""


def write_manifest(dataset: Path, name: str, kept: Sequence[Published], out: Path) -> None:
    """Write the manifest of the tasks that are kept, from the dataset.toml in ``dataset``. Raises OtvalUsageError."""
    try:
        document = tomlkit.parse((dataset / DATASET_TOML).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, TOMLKitError) as error:
        raise OtvalUsageError(f"{dataset / DATASET_TOML} cannot be read: {error}") from None
    about: Any = document.setdefault("dataset", tomlkit.table())
    if not PACKAGE_NAME.fullmatch(str(about.get("name", ""))):
        about["name"] = f"{OWNER}/{name}"
    ours: Any = document.get("otval", {})
    for key in OF_SOURCES:
        ours.pop(key, None)
    names = {one.name for one in kept}
    for task in [task for task in ours.get("known_bad", {}) if task not in names]:
        del ours["known_bad"][task]
    # Files beside the tasks are not published, and digests are new.
    for key in ("files", "tasks"):
        document.pop(key, None)
    tasks = tomlkit.aot()
    for one in kept:
        if one.harbor:
            table = tomlkit.table()
            table["name"], table["digest"] = one.harbor_name or f"{OWNER}/{one.name}", one.harbor
            tasks.append(table)
    document["tasks"] = tasks
    text = tomlkit.dumps(document)
    (out / DATASET_TOML).write_text(text, "utf-8")


def refusals(kept: Sequence[Published]) -> list[str]:
    """Return a line for each task that Harbor's manifest cannot have."""
    return [printable(f"{one.name}: {one.refusal}") for one in kept if not one.harbor]
