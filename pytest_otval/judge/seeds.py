"""All seeds of tasks, and which of them apply to one."""

from __future__ import annotations

from pytest_otval.judge.model import Rubric
from pytest_otval.judge.seeding import instructions, surroundings, verifiers
from pytest_otval.judge.seeding.texts import Fault, Seed, read_texts
from pytest_otval.task.load import Task

SEEDS: tuple[Seed, ...] = (*instructions.SEEDS, *verifiers.SEEDS, *surroundings.SEEDS)


def faults(task: Task, rubric: Rubric) -> list[Fault]:
    """Return the faults that can be put into a task, each into a copy of its own, and that a rubric asks about."""
    texts = read_texts(task)
    asked = {one.id for one in rubric.criteria}
    found = [seed.put(texts) for seed in SEEDS if seed.criterion in asked] if texts else []
    return [fault for fault in found if fault is not None]
