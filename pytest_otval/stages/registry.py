"""The one way to ask a stage."""

from __future__ import annotations

import pkgutil
import shutil
import time
from collections.abc import Callable
from functools import cache
from typing import Any, cast

from pytest_otval.core import Conclusion, StageResult, Verdict
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import Known, Question
from pytest_otval.stages.spec import Stage

RETRIES = 2
"""Only answers of class ``error`` are asked again."""

_FINAL = ("missing-tool", "runtime-missing", "endpoint-failed", "budget-spent", "judge-unreadable", "internal")
"""Errors that another try cannot change."""

_PASSING = ("host-disk-full", "network-unreachable", "base-unavailable")
"""Errors that may be gone in a moment: a mirror answers again, another trial gives back its disk."""

_PAUSES = (1.0, 3.0)
"""Seconds before the first and the second retry of these."""


def recall(stage: Stage, machine: Machine, known: Known) -> StageResult | None:
    """Return what a stage that remembers answers from memory."""
    remembered = cast("Callable[[Machine, Known], StageResult | None]", _named(stage.recall))
    return remembered(machine, known)


@cache
def _named(name: str) -> Any:
    """Return what ``module:function`` is."""
    return pkgutil.resolve_name(name)


def ask(stage: Stage, machine: Machine, question: Question) -> tuple[StageResult, int]:
    """Ask a stage, again where the machine was at fault; return its last answer and the number of retries.

    The evidence is that of the last try.
    """
    answer = cast("Callable[[Machine, Question], StageResult]", pkgutil.resolve_name(stage.answer))
    for tries in range(RETRIES + 1):
        try:
            result = answer(machine, question)
        except Conclusion as conclusion:
            result = StageResult(conclusion.reason, conclusion.headline, conclusion.log)
        if result.verdict is not Verdict.ERROR or result.reason in _FINAL or tries == RETRIES:
            break
        if result.reason in _PASSING:
            time.sleep(_PAUSES[tries])
        shutil.rmtree(question.evidence, ignore_errors=True)
    return result, tries
