"""Between items and stages: makes the machine once a process, and asks."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_otval.core import Conclusion, StageResult, Verdict
from pytest_otval.glue import extensions, options
from pytest_otval.glue.known import KnownAnswers, answer_in
from pytest_otval.glue.logs import Logs
from pytest_otval.glue.recording import Asked, Records
from pytest_otval.ledger import Ledger, Line, read_run
from pytest_otval.settings import Settings
from pytest_otval.stages.spec import OWN_MARKS
from pytest_otval.task.digest import task_digest
from pytest_otval.task.source import FolderSource

if TYPE_CHECKING:
    from pytest_otval.glue.folders import AtHand, TaskFolders
    from pytest_otval.profile import Profile
    from pytest_otval.stages.earlier import EarlierAttempts
    from pytest_otval.stages.judge_estimate import Estimate
    from pytest_otval.stages.machine import Machine
    from pytest_otval.stages.question import Known
    from pytest_otval.task.source import TaskSource

INSTALL_LOG = "runtimes.txt"
"""Of an item's evidence: what the installations of its runtimes said."""

SHOWN_CALLS = 8
"""Innermost calls that a report of a bug of ours shows."""


class Engine:
    """Answers the items of one process."""

    def __init__(self, config: pytest.Config, out: Path, writer: str) -> None:
        self._config = config
        self._out = out
        self._writer = writer
        self._given: dict[str, Line] = {}
        self._needs: tuple[AtHand, str] | None = None
        """Of the task at hand, once one of its stages asked."""

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
            extensions.model_agents(config),
        )
        return Machine(self.settings, Workspace.from_environment(), self._profile, added, config.rootpath)

    @cached_property
    def _folders(self) -> TaskFolders:
        from pytest_otval.glue.folders import TaskFolders

        return TaskFolders(lambda: self.machine.scratch.folder)

    @cached_property
    def _logs(self) -> Logs:
        keep = self.settings.run.keep
        return Logs(self._out, self._writer, keep, lambda: self.machine.scratch.folder)

    @cached_property
    def _known_answers(self) -> KnownAnswers:
        workspace, run = os.environ.get("OT_WORKSPACE", ""), self.settings.run
        runs = Path(workspace) / "runs" if workspace else None
        return KnownAnswers(self._out, runs, self.settings.verdict.digest(), bool(run.resume), run.reuse)

    @cached_property
    def records(self) -> Records:
        """Who writes the ledger."""
        return Records(self._config, Ledger(self._out, self._writer), self.settings)

    @cached_property
    def _earlier(self) -> EarlierAttempts:
        from pytest_otval.stages.earlier import EarlierAttempts

        return EarlierAttempts(self._out, self.settings.verdict.digest())

    def give(self, line: Mapping[str, Any]) -> None:
        """Take the line of an item that another process asked: it is told when the item's turn comes, and not asked."""
        self._given[line["id"]] = Line.from_dict(line)

    def ask(self, asked: Asked) -> tuple[StageResult, Line]:
        """Ask a stage about a task and write its lines, unless the answer is known; return the answer and its line."""
        given = self._given.pop(asked.nodeid, None)
        if given is not None:
            return answer_in(given), given
        folder, digest, retries, inputs = None, "", 0, ""
        fixes: list[dict[str, Any]] = []
        try:
            at_hand = self._folders.get(asked.source, asked.dataset.name, asked.task)
            digest = at_hand.digest
            if asked.pinned not in ("", digest):
                raise Conclusion("changed", "its files are not those of the contract any more: run it again")
            if self.settings.run.fix and asked.stage == "static":
                fixes = self._fix(asked, at_hand)
                at_hand = self._folders.get(asked.source, asked.dataset.name, asked.task)
                digest = at_hand.digest
            if self._sees_to_runtimes(asked):
                folder = self._evidence_folder(asked)
                self._keep_runtimes(asked, at_hand, folder)
                at_hand = self._folders.get(asked.source, asked.dataset.name, asked.task)
                digest = at_hand.digest
            inputs = self._inputs(asked, at_hand)
            if (known := self._known_line(asked, digest, inputs)) is not None:
                return answer_in(known), known
            result = self._recall(asked, digest)
            if result is None:
                folder = folder or self._evidence_folder(asked)
                result, retries = self._answer(asked, at_hand, folder, inputs)
        except Exception as error:
            result = _result_of(error)
        if fixes:
            result = replace(result, facts={**result.facts, "fixes": fixes})
        return result, self.records.result(
            asked, result, digest, retries, inputs, self._logs.keep(folder) if folder else ""
        )

    def recall(self, asked: Asked) -> Line | None:
        """Return the line of an answer that is remembered and a pass, written; None where it is to be asked for."""
        if asked.nodeid in self._given:
            return self._given.pop(asked.nodeid) if self._given[asked.nodeid].verdict == Verdict.PASS else None
        if self.settings.run.fix or self.settings.run.save_runtimes:
            return None
        # Where something is wrong it is asked for, and the answer tells.
        with suppress(Exception):
            at_hand = self._folders.get(asked.source, asked.dataset.name, asked.task)
            if asked.pinned not in ("", at_hand.digest):
                return None
            if not (self._known_answers.looks or extensions.stages(self._config)[asked.stage].recall):
                return None
            inputs = self._inputs(asked, at_hand)
            known = self._known_line(asked, at_hand.digest, inputs, passes_only=True)
            if known is not None:
                return known
            result = self._recall(asked, at_hand.digest)
            if result is not None and result.verdict is Verdict.PASS:
                return self.records.result(asked, result, at_hand.digest, inputs=inputs)
        return None

    def _inputs(self, asked: Asked, at_hand: AtHand) -> str:
        """Return the digest of what the answer depends on besides task, stage and settings."""
        from pytest_otval.stages.pinned import depends_on, needs_of

        stage = extensions.stages(self._config)[asked.stage]
        if stage.containers and self.trouble:
            return ""

        def needs() -> str:
            if self._needs is None or self._needs[0] is not at_hand:
                self._needs = (at_hand, needs_of(self.machine, at_hand.task))
            return self._needs[1]

        return depends_on(self.machine, stage, self._known(asked, at_hand.digest), needs)

    def estimate(self, asked: Asked) -> Estimate:
        """Return what an item of the judge would take. Raises Conclusion where its task is not to be had."""
        from pytest_otval.stages.judge_estimate import estimate
        from pytest_otval.stages.question import Question

        at_hand = self._folders.get(asked.source, asked.dataset.name, asked.task)
        question = Question(at_hand.task, asked.dataset.settings, Path(), digest=at_hand.digest)
        return estimate(extensions.stages(self._config)[asked.stage], self.machine, question)

    def is_likely_known(self, nodeids: Sequence[str], source: TaskSource, task: str) -> bool:
        """Whether all these items of a task may be told without asking; a guess for the order of work."""
        if not (self._known_answers.looks and isinstance(source, FolderSource)):
            return False
        digest = task_digest(source.folder(task, Path()))
        return all(self._known_answers.likely(nodeid, digest) for nodeid in nodeids)

    def _known_line(self, asked: Asked, digest: str, inputs: str, passes_only: bool = False) -> Line | None:
        """Return the line of an answer that stands; one of another run is written down here, too."""
        if not self._known_answers.looks:
            return None
        stage = extensions.stages(self._config)[asked.stage]
        count = self.settings.run.repeat if stage.repeats else 1
        line = self._known_answers.of(asked.nodeid, digest, inputs, count, stage.mark in OWN_MARKS)
        if line is None or (passes_only and line.verdict != Verdict.PASS):
            return None
        return self.records.known(asked, line)

    def ask_dataset(self, asked: Asked) -> tuple[StageResult, Line]:
        """Answer for a dataset.toml."""
        given = self._given.pop(asked.nodeid, None)
        if given is not None:
            return answer_in(given), given
        from pytest_otval.stages.dataset import dataset_answer

        try:
            result = dataset_answer(self.machine, asked.dataset, asked.source)
        except Exception as error:
            result = _result_of(error)
        return result, self.records.result(asked, result)

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
            self._logs.keep(evidence)

    def _answer(self, asked: Asked, at_hand: AtHand, evidence: Path, inputs: str) -> tuple[StageResult, int]:
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
        question = Question(task, asked.dataset.settings, evidence, stage.attempt, at_hand.digest, model=stage.model)
        if count == 1 or not stage.repeats:
            return ask(stage, self.machine, question)
        earlier = self._earlier.of(asked.nodeid, at_hand.digest, inputs)

        def keep(attempt: StageResult, folder: Path) -> str:
            place = self._logs.keep(folder)
            self.records.trials(asked, attempt, at_hand.digest, place, inputs)
            return place

        result, retries = ask_repeated(stage, self.machine, question, count, earlier, keep)
        facts = {name: value for name, value in result.facts.items() if name != "trials"}
        return replace(result, facts=facts), retries

    def _evidence_folder(self, asked: Asked) -> Path:
        """Return where a stage writes its logs; of a repeated one, attempts add up."""
        repeats = self.settings.run.repeat > 1 and extensions.stages(self._config)[asked.stage].repeats
        return self._logs.folder(asked.dataset.name, asked.task, asked.stage, fresh=not repeats)

    def close(self) -> None:
        """Give back what the machine holds."""
        made = self.__dict__
        if "records" in made:
            self.records.close()
        if "_folders" in made:
            self._folders.drop()
        if "_logs" in made:
            self._logs.close()
        if "machine" in made:
            self.machine.close()


def _result_of(error: Exception) -> StageResult:
    """Return the answer of a question that ended with an error."""
    if isinstance(error, Conclusion):
        return StageResult(error.reason, error.headline, error.log)
    headline = f"{type(error).__name__}: {error}".splitlines()[0]
    return StageResult("internal", headline, "".join(traceback.format_exception(error, limit=-SHOWN_CALLS)))
