"""Between items and stages: makes the machine once a process, asks, and writes the ledger."""

from __future__ import annotations

import re
import shutil
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_otval.core import Conclusion, StageResult, Verdict
from pytest_otval.glue import extensions, options
from pytest_otval.glue.lines import common_fields, result_line, trial_lines, with_columns
from pytest_otval.ledger import Ledger, Line, read_run
from pytest_otval.settings import Settings
from pytest_otval.task.dataset import DATASET_TOML
from pytest_otval.task.index import TASK_TOML, tasks_folder

if TYPE_CHECKING:
    from pytest_otval.evidence import Archive
    from pytest_otval.glue.folders import AtHand, TaskFolders
    from pytest_otval.profile import Profile
    from pytest_otval.stages.earlier import EarlierAttempts
    from pytest_otval.stages.machine import Machine
    from pytest_otval.stages.question import Known
    from pytest_otval.task.dataset import Dataset, KnownBad
    from pytest_otval.task.source import TaskSource

NODE_ID = re.compile(r"datasets/(?P<dataset>[^/]+)/(?:tasks/(?P<task>[^/]+)/task|dataset)\.toml::(?P<stage>.+)")
"""What ``core.node_id`` makes."""

INSTALL_LOG = "runtimes.txt"
"""Of an item's evidence: what the installations of its runtimes said."""

SHOWN_CALLS = 8
"""Innermost calls that a report of a bug of ours shows."""


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


class Engine:
    """Answers the items of one process."""

    def __init__(self, config: pytest.Config, out: Path, writer: str) -> None:
        self._config = config
        self._out = out
        self._writer = writer
        self._ledger = Ledger(out, writer)
        self._by_name: dict[Path, bool] = {}
        """Whether a dataset is found by its name."""

    @cached_property
    def _run(self) -> Mapping[str, Any]:
        """What the controller found out and wrote down."""
        return read_run(self._out)

    def prepared(self, run: Mapping[str, Any]) -> None:
        """Take what is found in ``run.json``, which a run that only collects does not write."""
        self._run = run

    @cached_property
    def settings(self) -> Settings:
        """The settings of the run."""
        flavour = str(self._run.get("flavour", ""))
        return options.make_settings(self._config, self._out, flavour, self._writer)

    @property
    def trouble(self) -> Mapping[str, str] | None:
        """What keeps this machine from running containers."""
        return self._run.get("trouble")

    @property
    def runs_containers(self) -> bool:
        """Whether this machine can."""
        return not self.trouble

    @cached_property
    def _profile(self) -> Profile:
        from pytest_otval.profile import load_profile

        return load_profile(self.settings.run.cluster, self._config.rootpath)

    @cached_property
    def machine(self) -> Machine:
        """The machine, with what plugins add to it."""
        from pytest_otval.stages.machine import Extensions, Machine
        from pytest_otval.workspace import Workspace

        config = self._config
        added = Extensions(
            extensions.checks(config),
            extensions.agents(config),
            lambda profile, store, offline: extensions.image_sources(config, profile, store, offline),
        )
        return Machine(self.settings, Workspace.from_environment(), self._profile, added)

    @cached_property
    def _folders(self) -> TaskFolders:
        from pytest_otval.glue.folders import TaskFolders

        return TaskFolders(lambda: self.machine.scratch.folder)

    @cached_property
    def _archive(self) -> Archive:
        from pytest_otval.evidence import Archive

        return Archive(self._out, self._writer)

    @cached_property
    def _earlier(self) -> EarlierAttempts:
        from pytest_otval.stages.earlier import EarlierAttempts

        return EarlierAttempts(self._out, self.settings.verdict.digest())

    @cached_property
    def _columns(self) -> list[Any]:
        return list(extensions.columns(self._config).values())

    def ask(self, asked: Asked) -> tuple[StageResult, Line]:
        """Ask a stage about a task and write its lines; return the answer and its line."""
        folder, digest, retries = None, "", 0
        fixes: list[dict[str, Any]] = []
        try:
            at_hand = self._folders.get(asked.source, asked.dataset.name, asked.task)
            digest = at_hand.digest
            if self.settings.run.fix and asked.stage == "static":
                fixes = self._fix(asked, at_hand)
                at_hand = self._folders.get(asked.source, asked.dataset.name, asked.task)
                digest = at_hand.digest
            if self._sees_to_runtimes(asked):
                folder = self._evidence_folder(asked)
                self._keep_runtimes(asked, at_hand, folder)
                at_hand = self._folders.get(asked.source, asked.dataset.name, asked.task)
                digest = at_hand.digest
            result = self._recall(asked, digest)
            if result is None:
                folder = folder or self._evidence_folder(asked)
                result, retries = self._answer(asked, at_hand, folder)
        except Exception as error:
            result = _result_of(error)
        if fixes:
            result = replace(result, facts={**result.facts, "fixes": fixes})
        return result, self._record(asked, result, digest, retries, self._kept(folder) if folder else "")

    def recall(self, asked: Asked) -> Line | None:
        """Return the line of an answer that is remembered and a pass, written; None where it is to be asked for."""
        if self.settings.run.fix:
            return None
        # Where something is wrong it is asked for, and the answer tells.
        with suppress(Exception):
            digest = self._folders.get(asked.source, asked.dataset.name, asked.task).digest
            result = self._recall(asked, digest)
            if result is not None and result.verdict is Verdict.PASS:
                return self._record(asked, result, digest)
        return None

    def ask_dataset(self, asked: Asked) -> tuple[StageResult, Line]:
        """Answer for a dataset.toml."""
        from pytest_otval.stages.dataset import dataset_answer

        try:
            result = dataset_answer(self.machine, asked.dataset, asked.source)
        except Exception as error:
            result = _result_of(error)
        return result, self._record(asked, result)

    def record_killed(self, nodeid: str, result: StageResult) -> Line | None:
        """Write and return the line of an item whose process died; None if the item is not ours."""
        found = NODE_ID.fullmatch(nodeid)
        if found is None:
            return None
        line = result_line(nodeid, result, common_fields(self.settings, "", found["stage"]))
        self._ledger.write(line)
        return line

    def _recall(self, asked: Asked, digest: str) -> StageResult | None:
        """Return the answer that the same question had before, where its stage remembers."""
        stage = extensions.stages(self._config)[asked.stage]
        if not stage.recall:
            return None
        from pytest_otval.stages.registry import recall

        return recall(stage, self.machine, self._known(asked, digest))

    def _known(self, asked: Asked, digest: str) -> Known:
        from pytest_otval.stages.question import Known

        return Known(asked.dataset.name, asked.task, digest, asked.dataset.settings)

    def _fix(self, asked: Asked, at_hand: AtHand) -> list[dict[str, Any]]:
        """Repair a task in its place; it is at hand anew afterwards."""
        from pytest_otval.stages.fixing import fix_task

        fixes = fix_task(self.machine, at_hand.folder, self._known(asked, at_hand.digest))
        if fixes:
            self._folders.drop()
        return [fix.as_dict() for fix in fixes]

    def _sees_to_runtimes(self, asked: Asked) -> bool:
        """Whether a task runs now, and its runtimes are to be restored or saved before."""
        wanted = self.settings.run.save_runtimes or asked.dataset.settings.runtimes
        runs = self.runs_containers and extensions.stages(self._config)[asked.stage].containers
        return bool(wanted and asked.task and runs)

    def _keep_runtimes(self, asked: Asked, at_hand: AtHand, evidence: Path) -> None:
        """See to the runtimes of a task; where its files changed, it is at hand anew afterwards."""
        from pytest_otval.glue.runtimes import keep_runtimes

        if keep_runtimes(self._config, self.machine, asked, at_hand, evidence / INSTALL_LOG):
            self._folders.drop()
        if self.settings.run.repeat > 1:
            # Each attempt has an entry of its own, which the line of the item names.
            self._kept(evidence)

    def _answer(self, asked: Asked, at_hand: AtHand, evidence: Path) -> tuple[StageResult, int]:
        from pytest_otval.stages.question import Question
        from pytest_otval.stages.registry import ask
        from pytest_otval.stages.repeat import ask_repeated
        from pytest_otval.task.scale import with_limits_scaled

        stage, count = extensions.stages(self._config)[asked.stage], self.settings.run.repeat
        task = at_hand.task
        if stage.containers:
            if self.trouble:
                return StageResult(self.trouble["class"], self.trouble["headline"]), 0
            task = with_limits_scaled(task, self.settings.verdict.timeout_multiplier)
        question = Question(task, asked.dataset.settings, evidence, digest=at_hand.digest)
        if count == 1 or not stage.repeats:
            return ask(stage, self.machine, question)
        earlier = self._earlier.of(asked.nodeid, at_hand.digest)

        def keep(attempt: StageResult, folder: Path) -> str:
            place = self._kept(folder)
            self._record_trials(asked, attempt, at_hand.digest, place)
            return place

        result, retries = ask_repeated(stage, self.machine, question, count, earlier, keep)
        facts = {name: value for name, value in result.facts.items() if name != "trials"}
        return replace(result, facts=facts), retries

    def _record_trials(self, asked: Asked, result: StageResult, digest: str, evidence: str) -> None:
        if not result.facts.get("trials"):
            return
        common = common_fields(self.settings, digest, asked.stage)
        line = result_line(asked.nodeid, replace(result, facts={**result.facts, "evidence": evidence}), common)
        for trial in trial_lines(line, result.facts.get("trials", ()), common):
            self._ledger.write(trial)

    def _record(
        self, asked: Asked, result: StageResult, digest: str = "", retries: int = 0, evidence: str = ""
    ) -> Line:
        common = common_fields(self.settings, digest, asked.stage)
        place = evidence or result.facts.get("evidence", "")
        facts: Mapping[str, Any] = {**result.facts, "evidence": place, "argument": self.argument(asked)}
        line = result_line(asked.nodeid, replace(result, facts=facts), common, retries, _expected(asked, result))
        if self._columns:
            line = replace(line, columns=with_columns(line.as_dict(), self._columns))
        self._record_trials(asked, result, digest, line.evidence)
        self._ledger.write(line)
        return line

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

    def _evidence_folder(self, asked: Asked) -> Path:
        """Return where a stage writes its logs; on scratch, since the workspace counts files."""
        folder = self._evidence_root / "evidence" / asked.dataset.name / asked.task / asked.stage
        if self.settings.run.repeat == 1:
            # What an item that was run before left there is not this item's; of a repeated one, attempts add up.
            shutil.rmtree(folder, ignore_errors=True)
        return folder

    @property
    def _evidence_root(self) -> Path:
        return self._out if self.settings.run.keep else self.machine.scratch.folder

    def _kept(self, folder: Path) -> str:
        """Return the place of a folder of logs, once they are where they stay; empty where there are none."""
        if not folder.is_dir() or not any(folder.iterdir()):
            return ""
        evidence = folder.relative_to(self._evidence_root)
        if self.settings.run.keep:
            return str(evidence)
        try:
            return self._archive.add(folder, str(evidence.relative_to("evidence")))
        except OSError as error:
            # The answer stands without its logs.
            return f"not kept: {error.strerror}"
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Give back what the machine holds."""
        self._ledger.close()
        made = self.__dict__
        if "_folders" in made:
            self._folders.drop()
        if "_archive" in made:
            self._archive.close()
        if "machine" in made:
            self.machine.close()


def _expected(asked: Asked, result: StageResult) -> str:
    """Return why an answer that is no pass is the expected one; empty where it is not."""
    if asked.known_bad is not None and asked.known_bad.expects(asked.stage, result.verdict):
        return str(asked.known_bad)
    return f"contract: n/a {result.reason}" if asked.inapplicable and result.reason == asked.inapplicable else ""


def _result_of(error: Exception) -> StageResult:
    """Return the answer of a question that ended with an error."""
    if isinstance(error, Conclusion):
        return StageResult(error.reason, error.headline, error.log)
    headline = f"{type(error).__name__}: {error}".splitlines()[0]
    return StageResult("internal", headline, "".join(traceback.format_exception(error, limit=-SHOWN_CALLS)))
