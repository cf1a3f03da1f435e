"""The keys under which a run's plan and engine lie in pytest's stash."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_otval.glue.selection import Selection

if TYPE_CHECKING:
    from pytest_otval.contract.model import Contract


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run was asked for."""

    selection: Selection
    stages: tuple[str, ...]
    """Of tasks that are wanted as a whole, in the order they run."""
    named: tuple[str, ...]
    """All that an argument may name; a stage that is named need not be one that runs by default."""
    args: tuple[str, ...]
    """The command line as it was given."""
    contract: Contract | None = None
    """What the run is to be, where a contract says it; of a shard its part."""
    unprepared: tuple[str, ...] = ()
    """Of datasets that were named and have no tasks yet: what is to be done, where a run tells all that is missing."""


PLAN = pytest.StashKey[Plan]()
ENGINE = pytest.StashKey[Any]()
"""The process's ``glue.engine.Engine``; not named here, since engine and items import this module."""
OUT = pytest.StashKey[Path]()
