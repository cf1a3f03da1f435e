"""Nodes: a dataset, its tasks, their stages. Ids are given explicitly and do not depend on where anything lies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from typing import Any
from urllib.parse import quote
from warnings import WarningMessage

import pytest

from pytest_otval.core import NAME, node_id
from pytest_otval.glue.item import DatasetItem, StageItem
from pytest_otval.glue.selection import DatasetSelection, Stages
from pytest_otval.task.dataset import DATASET_TOML, Dataset, load_dataset
from pytest_otval.task.source import TaskSource, source_of


class _Node(pytest.Collector):
    """A node without conftests of its own, so that hooks need no look-up by path."""

    @property
    def ihook(self) -> Any:
        return self.session.config.hook


class DatasetNode(_Node):
    """A dataset; lists its tasks with one scan and makes nodes for the wanted ones only."""

    def __init__(self, *, chosen: DatasetSelection, stages: tuple[str, ...], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.chosen = chosen
        self.stages = stages

    @cached_property
    def dataset(self) -> Dataset:
        """Name and settings, read once."""
        return load_dataset(self.chosen.path)

    @cached_property
    def source(self) -> TaskSource:
        """Where its tasks come from."""
        return source_of(self.chosen.path)

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Yield the dataset's own item, then its tasks by name."""
        chosen = self.chosen
        if "static" in self.stages and (chosen.whole or chosen.own_stages) and (chosen.path / DATASET_TOML).is_file():
            yield DatasetItem.from_parent(
                self, name="static", path=chosen.path / DATASET_TOML, nodeid=node_id(self.name, None, "static")
            )
        wanted: dict[str, Stages | None] = dict(chosen.tasks)
        if chosen.whole:
            names, others = self.source.names()
            wanted.update(dict.fromkeys(names))
            for other in others:
                self._say(f"{self.name}: the folder {other!r} has no task.toml and is no task")
        for name in sorted(wanted):
            yield self._task(name, wanted[name])

    def _say(self, message: str) -> None:
        """Warn by pytest's own channel: by Python's, ``-W error`` would make it an error that stops the run."""
        warning = WarningMessage(pytest.PytestCollectionWarning(message), pytest.PytestCollectionWarning, "", 0)
        details = {"warning_message": warning, "when": "collect", "nodeid": self.nodeid, "location": None}
        self.ihook.pytest_warning_recorded.call_historic(kwargs=details)

    def _task(self, name: str, want: Stages | None) -> pytest.Collector:
        kind = TaskNode if NAME.fullmatch(name) else BadNameNode
        # Reports show node ids as they are, so a name that cannot stand in one is quoted.
        nodeid = node_id(self.name, quote(os.fsencode(name), safe=""), "").removesuffix("::")
        return kind.from_parent(self, name=name, path=self.source.anchor(name), nodeid=nodeid, want=want)


class TaskNode(_Node):
    """A task; its stages are items."""

    def __init__(self, *, want: Stages | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.want = want

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Yield an item for each wanted stage, in the order stages run."""
        dataset = self.parent
        assert isinstance(dataset, DatasetNode)
        for stage in dataset.stages:
            if self.want is None or stage in self.want:
                nodeid = node_id(dataset.name, self.name, stage)
                known_bad = dataset.dataset.settings.known_bad.get(self.name)
                yield StageItem.from_parent(self, name=stage, nodeid=nodeid, known_bad=known_bad)


class BadNameNode(TaskNode):
    """A task whose name cannot stand in a node id."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Refuse, naming the task."""
        raise self.CollectError(f"task name {self.name!r}: only letters, digits and . _ - can stand in a node id")


def dataset_nodes(session: pytest.Session) -> list[pytest.Collector]:
    """Return the nodes of the run's selection."""
    from pytest_otval.glue.plan import PLAN

    plan = session.config.stash.get(PLAN, None)
    if plan is None:
        return []
    return [
        DatasetNode.from_parent(
            session, name=name, path=chosen.path, nodeid=f"datasets/{name}", chosen=chosen, stages=plan.stages
        )
        for name, chosen in sorted(plan.selection.items())
    ]
