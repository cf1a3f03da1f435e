"""The adapters by name. A module is imported when its adapter is asked for."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

from pytest_otval.core import OtvalUsageError
from pytest_otval.sources.adapters.base import Adapter

ADAPTERS: Mapping[str, tuple[str, str]] = {
    "bugsinpy": ("bugsinpy", "BugsInPy"),
    "harbor-parquet": ("harbor_parquet", "HarborParquet"),
    "swe": ("swe", "Swe"),
    "terminal-bench": ("terminal_bench", "TerminalBench"),
}
"""Module of this package and class, by the adapter's name. The class is a frozen dataclass; its fields are options."""


def make_adapter(name: str, options: Mapping[str, Any] | None = None) -> Adapter:
    """Return the adapter of that name with these options. Raises OtvalUsageError for what there is none of."""
    from pydantic import ValidationError

    if name not in ADAPTERS:
        close = difflib.get_close_matches(name, ADAPTERS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(ADAPTERS)}"
        raise OtvalUsageError(f"there is no adapter {name!r}: {hint}")
    module, kind = ADAPTERS[name]
    try:
        made: Adapter = getattr(importlib.import_module(f"{__package__}.{module}"), kind)(**(options or {}))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "options"
        raise OtvalUsageError(f"adapter {name}: {where}: {first['msg']}") from None
    return made
