"""Nodes: a dataset, its tasks, their stages. Ids are given explicitly and do not depend on where anything lies."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from pytest_otval.core import NAME, node_id, stage_of
from pytest_otval.glue.contracting import known_bad_of
from pytest_otval.glue.item import DatasetItem, StageItem
from pytest_otval.glue.notes import warn
from pytest_otval.glue.plan import PLAN
from pytest_otval.glue.selection import DatasetSelection, Stages
from pytest_otval.stages.spec import EVERY_STAGE
from pytest_otval.task.dataset import DATASET_TOML, MAX_TOML_BYTES, Dataset, KnownBad, load_dataset
from pytest_otval.task.index import is_task, tasks_folder
from pytest_otval.task.reading import NotReadableError, read_regular
from pytest_otval.task.source import FolderSource, TaskSource

if TYPE_CHECKING:
    from pytest_otval.contract.model import DatasetPin


class _Node(pytest.Collector):
    """A node without conftests of its own, so that hooks need no look-up by path."""

    @property
    def ihook(self) -> Any:
        return self.session.config.hook


class DatasetNode(_Node):
    """A dataset; lists its tasks with one scan and makes nodes for the wanted ones only."""

    def __init__(
        self, *, chosen: DatasetSelection, stages: tuple[str, ...], named: tuple[str, ...], **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.chosen = chosen
        self.stages = stages
        self.named = named

    @property
    def pin(self) -> DatasetPin | None:
        """What a contract says of it, where there is one."""
        contract = self.config.stash[PLAN].contract
        return None if contract is None else contract.datasets[self.name]

    @cached_property
    def dataset(self) -> Dataset:
        """Name and settings, read once."""
        return load_dataset(self.chosen.path)

    @cached_property
    def known_bad(self) -> Mapping[str, KnownBad]:
        """Tasks that are recorded as bad, by the contract where there is one.

        A published dataset.toml lists each task with its digest, so it is not parsed where it cannot speak of them.
        """
        if self.pin is not None:
            return known_bad_of(self.pin)
        try:
            source = read_regular(self.chosen.path / DATASET_TOML, MAX_TOML_BYTES)
        except (FileNotFoundError, NotReadableError):
            return {}
        # TOML lets a key be written with escapes.
        speaks_of_them = b"known_bad" in source or b"\\" in source
        return self.dataset.settings.known_bad if speaks_of_them else {}

    @property
    def source(self) -> TaskSource:
        """Where its tasks come from."""
        return self.chosen.source

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
                self._say(f"the folder {other!r} has no task.toml and is no task")
            for name in self._beside_tasks():
                self._say(f"the task {name!r} lies beside tasks/ and is left out: move it there")
        self._check_known_bad(wanted)
        for name in sorted(wanted):
            yield self._task(name, wanted[name])

    def _beside_tasks(self) -> list[str]:
        folder = self.chosen.path
        if not isinstance(self.source, FolderSource) or tasks_folder(folder) == folder:
            return []
        return sorted(child.name for child in folder.iterdir() if is_task(child))

    def _check_known_bad(self, wanted: Iterable[str]) -> None:
        """Say which entries of known_bad can have no effect."""
        for task, bad in self.known_bad.items():
            if task not in wanted and not self.source.has(task):
                names = wanted if self.chosen.whole else self.source.names()[0]
                self._say(f"known_bad names {task!r}, which is no task of it{_near(task, names)}")
            known = {*map(stage_of, self.named), *(stage.name for stage in EVERY_STAGE)}
            for stage in bad.stages:
                if stage not in known:
                    self._say(f"known_bad of {task!r} names {stage!r}, which is no stage{_near(stage, known)}")

    def _say(self, message: str) -> None:
        warn(self.config, f"{self.name}: {message}", self.nodeid)

    def _task(self, name: str, want: Stages | None) -> pytest.Collector:
        good = NAME.fullmatch(name)
        # Reports show node ids as they are, so a name that cannot stand in one is quoted.
        shown = name if good else quote(os.fsencode(name), safe="")
        nodeid = node_id(self.name, shown, "").removesuffix("::")
        kind = TaskNode if good else BadNameNode
        return kind.from_parent(self, name=name, path=self.source.anchor(name), nodeid=nodeid, want=want)


def _near(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


class TaskNode(_Node):
    """A task; its stages are items."""

    def __init__(self, *, want: Stages | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.want = want

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Yield an item for each wanted stage, in the order stages run."""
        dataset = self.parent
        assert isinstance(dataset, DatasetNode)
        stages = dataset.stages if self.want is None else [stage for stage in dataset.named if stage in self.want]
        known_bad = dataset.known_bad.get(self.name)
        classes = {} if dataset.pin is None else dataset.pin.inapplicable.get(self.name, {})
        for stage in stages:
            # pytest makes the id: this node's, "::" and the stage, as node_id does.
            yield StageItem.from_parent(self, name=stage, known_bad=known_bad, inapplicable=classes.get(stage, ""))


class BadNameNode(TaskNode):
    """A task whose name cannot stand in a node id."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Refuse, naming the task."""
        raise self.CollectError(f"task name {self.name!r}: only letters, digits and . _ - can stand in a node id")


def dataset_nodes(session: pytest.Session) -> list[pytest.Collector]:
    """Return the nodes of the run's selection."""
    plan = session.config.stash.get(PLAN, None)
    if plan is None:
        return []
    return [
        DatasetNode.from_parent(
            session,
            name=name,
            path=chosen.path,
            nodeid=f"datasets/{name}",
            chosen=chosen,
            stages=plan.stages,
            named=plan.named,
        )
        for name, chosen in sorted(plan.selection.items())
    ]
