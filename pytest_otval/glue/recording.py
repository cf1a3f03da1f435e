"""From an answer to the ledger: what is written of it, and what is expected of an item."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_otval.core import StageResult, stage_of
from pytest_otval.glue import extensions
from pytest_otval.glue.known import answer_in
from pytest_otval.glue.lines import common_fields, result_line, trial_lines, with_columns
from pytest_otval.ledger import Ledger, Line
from pytest_otval.settings import Settings
from pytest_otval.task.dataset import DATASET_TOML
from pytest_otval.task.index import TASK_TOML, tasks_folder

if TYPE_CHECKING:
    from pytest_otval.task.dataset import Dataset, KnownBad
    from pytest_otval.task.source import TaskSource

NODE_ID = re.compile(r"datasets/(?P<dataset>[^/]+)/(?:tasks/(?P<task>[^/]+)/task|dataset)\.toml::(?P<stage>.+)")
"""What ``core.node_id`` makes."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an item asks about."""

    nodeid: str
    stage: str
    dataset: Dataset
    source: TaskSource
    task: str
    """Empty for the dataset itself."""
    known_bad: KnownBad | None = None
    inapplicable: str = ""
    """Class of the n/a that a contract expects."""
    pinned: str = ""
    """Digest of the task in the contract; empty where there is none."""


class Records:
    """Writes the ledger of one process."""

    def __init__(self, config: pytest.Config, ledger: Ledger, settings: Settings) -> None:
        self._config = config
        self._ledger = ledger
        self._settings = settings
        self._by_name: dict[Path, bool] = {}
        """Whether a dataset is found by its name."""

    @cached_property
    def _columns(self) -> list[Any]:
        return list(extensions.columns(self._config).values())

    def result(
        self,
        asked: Asked,
        result: StageResult,
        digest: str = "",
        retries: int = 0,
        inputs: str = "",
        evidence: str = "",
    ) -> Line:
        """Write the lines of an answer and return that of its result."""
        common = self._common(digest, asked.stage)
        place = evidence or result.facts.get("evidence", "")
        facts: Mapping[str, Any] = {
            **result.facts,
            "evidence": place,
            "argument": self.argument(asked),
            "inputs": inputs,
        }
        line = result_line(asked.nodeid, replace(result, facts=facts), common, retries, _expected(asked, result))
        if self._columns:
            line = replace(line, columns=with_columns(line.as_dict(), self._columns))
        self.trials(asked, result, digest, line.evidence, inputs)
        self._ledger.write(line)
        return line

    def trials(self, asked: Asked, result: StageResult, digest: str, evidence: str, inputs: str) -> None:
        """Write the lines of an answer's trials, whose logs lie at ``evidence``."""
        if not result.facts.get("trials"):
            return
        common = self._common(digest, asked.stage)
        facts = {**result.facts, "evidence": evidence, "inputs": inputs}
        line = result_line(asked.nodeid, replace(result, facts=facts), common)
        for trial in trial_lines(line, result.facts.get("trials", ()), common):
            self._ledger.write(trial)

    def known(self, asked: Asked, line: Line) -> Line:
        """Return the line of an answer that was given before, written down if it is of another run."""
        line = replace(line, known_bad=_expected(asked, answer_in(line)), argument=self.argument(asked))
        if line.cached_from:
            self._ledger.write(line)
        return line

    def killed(self, nodeid: str, result: StageResult) -> Line | None:
        """Write and return the line of an item whose process died; None if the item is not ours."""
        found = NODE_ID.fullmatch(nodeid)
        if found is None:
            return None
        line = result_line(nodeid, result, self._common("", found["stage"]))
        self._ledger.write(line)
        return line

    def _common(self, digest: str, item: str) -> dict[str, Any]:
        return common_fields(self._settings, digest, extensions.stages(self._config)[item])

    def argument(self, asked: Asked) -> str:
        """Return what names an item on a command line, where its id does not."""
        dataset = asked.source.path
        if self.found_by_name(dataset, asked.dataset.name):
            return ""
        file = tasks_folder(dataset) / asked.task / TASK_TOML if asked.task else dataset / DATASET_TOML
        return f"{file}::{asked.stage}"

    def found_by_name(self, dataset: Path, name: str) -> bool:
        """Whether a dataset's folder is found by ``datasets/NAME`` alone."""
        if dataset not in self._by_name:
            named = (place / "datasets" / name for place in extensions.places(self._config))
            self._by_name[dataset] = any(path.is_dir() and path.samefile(dataset) for path in named)
        return self._by_name[dataset]

    def close(self) -> None:
        """Close the file."""
        self._ledger.close()


def _expected(asked: Asked, result: StageResult) -> str:
    """Return why an answer that is no pass is the expected one; empty where it is not."""
    if asked.known_bad is not None and asked.known_bad.expects(stage_of(asked.stage), result.verdict):
        return str(asked.known_bad)
    return f"contract: n/a {result.reason}" if asked.inapplicable and result.reason == asked.inapplicable else ""
