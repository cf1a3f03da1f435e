"""Whether a task says that it needs the public network, and the task with another network than it says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

from pytest_otval.task.load import Task
from pytest_otval.task.model import NetworkMode, Table

T = TypeVar("T", bound=Table)

_MODE, _OLD = "network_mode", "allow_internet"


def declares_public(task: Task) -> bool:
    """Whether task.toml asks for the public network in so many words: it is the default where nothing is said."""
    return task.config is not None and any(
        getattr(table, _MODE, None) == NetworkMode.PUBLIC and {_MODE, _OLD} & table.model_fields_set
        for table in _tables(task.config)
    )


def with_network(task: Task, mode: NetworkMode) -> Task:
    """Return a task whose phases all have one network."""
    return task if task.config is None else replace(task, config=_changed(task.config, mode))


def _tables(value: Any) -> Iterator[Table]:
    if isinstance(value, Table):
        yield value
        for name in type(value).model_fields:
            yield from _tables(getattr(value, name))
    elif isinstance(value, list):
        for entry in value:
            yield from _tables(entry)


def _changed(table: T, mode: NetworkMode) -> T:
    values = {name: getattr(table, name) for name in type(table).model_fields}
    return table.model_copy(update={name: _value(name, value, mode) for name, value in values.items()})


def _value(name: str, value: Any, mode: NetworkMode) -> Any:
    if isinstance(value, Table):
        return _changed(value, mode)
    if isinstance(value, list):
        return [_value("", entry, mode) for entry in value]
    return mode if name == _MODE and value is not None else value
