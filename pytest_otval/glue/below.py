"""A folder of datasets, and which they are."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_otval.task.dataset import DATASET_TOML
from pytest_otval.task.index import is_dataset

DATASETS = "datasets"
"""The name of the folder of datasets in a project and in the workspace."""


def datasets_below(folder: Path) -> tuple[list[Path], bool]:
    """Return the datasets right below a folder of datasets, by name, and whether other folders lie beside them.

    A folder called ``datasets`` is a folder of datasets if one is in it. Any other is one only if all its folders have
    a dataset.toml: a project that happens to hold a dataset is none.
    """
    named_so = folder.name == DATASETS
    found: list[Path] = []
    others = False
    for child in _folders(folder):
        if os.path.lexists(child / DATASET_TOML) or (named_so and is_dataset(child)):
            found.append(child)
        elif named_so:
            others = True
        else:
            return [], True
    return sorted(found), others


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            # Not entry.is_dir(), which raises for a loop of links.
            return [
                folder / entry.name
                for entry in entries
                if entry.name[0] not in "._" and os.path.isdir(entry.path)  # noqa: PTH112
            ]
    except OSError:
        return []
