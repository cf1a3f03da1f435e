"""Before a task runs: the files that name its runtimes are there, and what it asks for is made where that is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.glue.notes import warn

if TYPE_CHECKING:
    from pytest_otval.glue.folders import AtHand
    from pytest_otval.glue.recording import Asked
    from pytest_otval.stages.machine import Machine

_TOLD = pytest.StashKey[set[str]]()
"""What this run has warned of."""


def keep_runtimes(config: pytest.Config, machine: Machine, asked: Asked, at_hand: AtHand, log: Path) -> bool:
    """Restore what the dataset names, and save what is missing under --otval-save-runtimes; tell whether files changed.

    What installations say is appended to ``log``. Raises Conclusion, for a recipe that is wrong ``runtime-missing``.
    """
    try:
        return _kept(config, machine, asked, at_hand, log)
    except OtvalUsageError as error:
        raise Conclusion("runtime-missing", str(error)) from None


def _kept(config: pytest.Config, machine: Machine, asked: Asked, at_hand: AtHand, log: Path) -> bool:
    from pytest_otval.stages.saving import name_runtimes, restore_runtimes, save_runtimes

    task, rootdir, named = at_hand.task, config.rootpath, asked.dataset.settings.runtimes
    in_place = not at_hand.folder.is_relative_to(machine.scratch.folder)
    changed = in_place and restore_runtimes(machine, task, named, rootdir)
    if not machine.settings.run.save_runtimes:
        return changed
    saved = save_runtimes(machine, task, rootdir, in_place, log=log)
    trouble = name_runtimes(task, asked.dataset, saved) if in_place else ""
    told = config.stash.setdefault(_TOLD, set())
    if trouble and trouble not in told:
        told.add(trouble)
        warn(config, f"{trouble}: the tasks alone name their runtimes, and preparing them anew loses that")
    return changed or bool(saved)
