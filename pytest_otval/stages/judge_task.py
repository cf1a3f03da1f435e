"""judge_task: what does a model say of the task's files? It sees no score, and nothing of how anybody fared."""

from __future__ import annotations

import time
from dataclasses import replace

from pytest_otval.core import StageResult
from pytest_otval.judge.files import task_material
from pytest_otval.stages.judging import Judge, concluded, outcomes_told
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import Question, config_of


def answer(machine: Machine, question: Question) -> StageResult:
    """Have the task reviewed. Raises Conclusion."""
    began = time.monotonic()
    config_of(question.task)
    judge = Judge(machine, question, "instruction")
    found = judge.review(task_material(question.task, judge.characters))
    result = concluded(judge, [found], outcomes_told(found))
    return replace(result, facts={**result.facts, "seconds": {"total": round(time.monotonic() - began, 4)}})
