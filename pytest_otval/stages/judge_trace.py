"""judge_trace: what does a model say of the attempts at the task? Blind first; then each review meets the reward."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from pytest_otval.core import Conclusion, StageResult
from pytest_otval.evidence import EvidenceError
from pytest_otval.judge.material import Material
from pytest_otval.judge.model import Review
from pytest_otval.judge.reconcile import classify
from pytest_otval.judge.trace import trace_material
from pytest_otval.stages.attempted import Line, trajectory_of
from pytest_otval.stages.judging import Judge, concluded
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import Question, config_of
from pytest_otval.task.load import Task
from pytest_otval.task.reading import NotReadableError, read_regular

MOST_INSTRUCTION_BYTES = 1024 * 1024

_SOLVED = {"expected": True, "unsolved": False}
"""By class of an attempt; others gave no score."""


def answer(machine: Machine, question: Question) -> StageResult:
    """Have each attempt reviewed. Raises Conclusion, ``no-attempts`` where there is none whose trajectory is there."""
    began = time.monotonic()
    config_of(question.task)
    judge = Judge(machine, question, "trace")
    reviews: list[Review] = []
    unread: list[str] = []
    for line in attempts_at(machine, question):
        try:
            material = material_of(machine, question.task, line, judge.characters)
        except (EvidenceError, OSError) as error:
            unread.append(str(error))
            continue
        found = judge.review(material, str(line["id"]))
        reviews.append(replace(found, classification=classify(found, _SOLVED.get(line["class"]), _flags(line))))
    if not reviews:
        why = f"; of {len(unread)} the trajectory cannot be read: {unread[0]}" if unread else ""
        raise Conclusion("no-attempts", f"{machine.attempts.run} has none at these files of the task{why}")
    result = concluded(judge, reviews, _told(reviews, len(unread)))
    return replace(result, facts={**result.facts, "seconds": {"total": round(time.monotonic() - began, 4)}})


def attempts_at(machine: Machine, question: Question) -> list[Line]:
    """Return the lines of the attempts that are to be reviewed."""
    return machine.attempts.of(question.task.dataset, question.task.name, question.digest)


def material_of(machine: Machine, task: Task, line: Line, characters: int) -> Material:
    """Return what is shown of an attempt. Raises EvidenceError, OSError where its trajectory cannot be read."""
    trajectory = trajectory_of(machine.attempts.run, str(line.get("evidence") or ""))
    facts = line.get("trajectory")
    return trace_material(
        "\n".join(_instructions(task)), trajectory, facts if isinstance(facts, dict) else {}, characters
    )


def _instructions(task: Task) -> Iterator[str]:
    for step in task.steps:
        try:
            yield read_regular(step.instruction, MOST_INSTRUCTION_BYTES).decode(errors="replace")
        except (NotReadableError, FileNotFoundError):
            continue


def _flags(line: Line) -> list[str]:
    facts = line.get("trajectory")
    flags = facts.get("flags") if isinstance(facts, dict) else None
    return [one for one in flags if isinstance(one, str)] if isinstance(flags, list) else []


def _told(reviews: list[Review], unread: int) -> str:
    classes = Counter(one.classification for one in reviews).most_common()
    more = f"; of {unread} the trajectory cannot be read" if unread else ""
    return f"{', '.join(f'{count} {name}' for name, count in classes)}{more}"
