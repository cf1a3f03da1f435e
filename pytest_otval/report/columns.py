"""A column of reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Column:
    """A column of reports."""

    title: str
    value: Callable[[Mapping[str, Any]], str]
    """Makes the text of a cell from a result line of the ledger, see ``ledger.Line``; ``""`` leaves it empty."""
