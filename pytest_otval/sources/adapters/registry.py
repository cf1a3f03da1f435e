"""The adapters by name. A module is imported when its adapter is asked for."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from pytest_otval.core import OtvalUsageError
from pytest_otval.sources.adapters.base import Adapter

ADAPTERS: Mapping[str, tuple[str, str]] = {
    "bugsinpy": ("bugsinpy", "BugsInPy"),
    "harbor-parquet": ("harbor_parquet", "HarborParquet"),
    "releases": ("releases", "ReleasePairs"),
    "swe": ("swe", "Swe"),
    "terminal-bench": ("terminal_bench", "TerminalBench"),
}
"""Module of this package and class, by the adapter's name. The class is a frozen dataclass; its fields are options."""


def make_adapter(name: str, options: Mapping[str, Any] | None = None, dataset: Path | None = None) -> Adapter:
    """Return the adapter of that name with these options. Raises OtvalUsageError for what there is none of.

    Options that are paths are relative to the dataset's folder.
    """
    from pydantic import ValidationError

    if name not in ADAPTERS:
        close = difflib.get_close_matches(name, ADAPTERS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(ADAPTERS)}"
        raise OtvalUsageError(f"there is no adapter {name!r}: {hint}")
    module, called = ADAPTERS[name]
    kind = getattr(importlib.import_module(f"{__package__}.{module}"), called)
    try:
        made = kind(**(options or {}))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "options"
        raise OtvalUsageError(f"adapter {name}: {where}: {first['msg']}") from None
    values = {field.name: getattr(made, field.name) for field in fields(kind)}
    paths = {key: (dataset or Path()) / value for key, value in values.items() if isinstance(value, Path)}
    anchored: Adapter = replace(made, **paths)
    return anchored
