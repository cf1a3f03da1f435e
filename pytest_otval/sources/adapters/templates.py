"""Files of tasks that come with the package; ``@NAME@`` stands for what differs between tasks."""

from __future__ import annotations

from functools import cache
from importlib import resources

from pytest_otval.sources.releases.task import fill

__all__ = ["fill", "read_data"]


@cache
def read_data(path: str) -> str:
    """Return the text of a file of ``data/adapters``."""
    return (resources.files("pytest_otval") / "data" / "adapters" / path).read_text(encoding="utf-8")
