"""Time limits of a task times a factor: for machines slower than those the limits were written for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from pytest_otval.task.load import Task
from pytest_otval.task.model import Table

T = TypeVar("T", bound=Table)

LIMITS = frozenset({"timeout_sec", "build_timeout_sec", "start_period_sec", "interval_sec"})
"""Keys of task.toml, in whatever table. A health check may fail ``retries`` times, ``interval_sec`` apart: the interval
is part of its limit. ``start_interval_sec`` only says how often it is tried in a start period, whose length is scaled.
"""


def with_limits_scaled(task: Task, factor: float) -> Task:
    """Return a task whose every time limit, defaults included, is ``factor`` times what task.toml says."""
    if factor == 1 or task.config is None:
        return task
    return replace(task, config=_scaled(task.config, factor))


def _scaled(table: T, factor: float) -> T:
    values = {name: getattr(table, name) for name in type(table).model_fields}
    return table.model_copy(update={name: _value(name, value, factor) for name, value in values.items()})


def _value(name: str, value: Any, factor: float) -> Any:
    if isinstance(value, Table):
        return _scaled(value, factor)
    if isinstance(value, list):
        return [_value("", entry, factor) for entry in value]
    return value * factor if name in LIMITS and value is not None else value
