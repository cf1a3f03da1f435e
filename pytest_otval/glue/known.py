"""Answers that need no asking: given by another process, or found in the ledger of this run or of earlier ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_otval.core import StageResult
from pytest_otval.ledger import Line

if TYPE_CHECKING:
    from pytest_otval.stages.answers import EarlierAnswers


class KnownAnswers:
    """Those of one process."""

    def __init__(self, out: Path, runs: Path | None, settings_digest: str, resume: bool, reuse: bool) -> None:
        """``out`` is the run folder, which is gone on with where ``resume`` says so; ``runs`` has all others."""
        self._out = out
        self._all_runs = runs
        self._settings_digest = settings_digest
        self._resume = resume
        self._reuse = reuse

    @property
    def looks(self) -> bool:
        """Whether anything may be found."""
        return self._resume or self._reuse

    def likely(self, id: str, task_digest: str) -> bool:
        """Whether the item may have an answer that stands; a guess for the order of work."""
        sources = [*([self._here] if self._resume else []), *([self._elsewhere] if self._reuse else [])]
        return any(source.has_some(id, task_digest) for source in sources)

    def of(self, id: str, task_digest: str, inputs: str, count: int, ours: bool) -> Line | None:
        """Return the line of an answer that stands; ``cached_from`` names the run, empty for the one that goes on.

        ``count`` is the number of attempts, ``ours`` whether the stage is none of a plugin: of those nothing tells
        whether they would answer alike, so they are taken from the run that goes on alone.
        """
        from pytest_otval.stages.answers import may_be_reused

        if self._resume and (found := self._here.of(id, task_digest, inputs, count)) is not None:
            line = found[1]
            if may_be_reused(line, inputs or ("" if ours else "plugin")):
                return replace(Line.from_dict(line), cached_from="")
        if self._reuse and (found := self._elsewhere.of(id, task_digest, inputs, count)) is not None:
            run, line = found
            if may_be_reused(line, inputs):
                return replace(Line.from_dict(line), cached_from=str(run), evidence="", reproduce="", time="")
        return None

    @cached_property
    def _here(self) -> EarlierAnswers:
        from pytest_otval.stages.answers import EarlierAnswers

        return EarlierAnswers([self._out], self._settings_digest)

    @cached_property
    def _elsewhere(self) -> EarlierAnswers:
        from pytest_otval.stages.answers import EarlierAnswers

        runs = sorted(self._all_runs.iterdir()) if self._all_runs and self._all_runs.is_dir() else []
        return EarlierAnswers([run for run in runs if run != self._out], self._settings_digest)


def answer_in(line: Mapping[str, Any] | Line) -> StageResult:
    """Return what a line of the ledger answers."""
    known = line if isinstance(line, Line) else Line.from_dict(line)
    return StageResult(known.reason, known.headline, known.log)
