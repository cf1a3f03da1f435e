"""build: do the images of the task build?"""

from __future__ import annotations

import time

from pytest_otval.core import StageResult
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import BUILD_LOG, Question, agent_image, image_facts, require_runnable, verifier_image


def answer(machine: Machine, question: Question) -> StageResult:
    """Make the image of the agent's phase and those of separate verifiers, or find them in the store."""
    task = question.task
    require_runnable(task)
    began, waited = time.monotonic(), machine.admission.waited
    log = question.evidence / BUILD_LOG
    image = machine.images.ensure(agent_image(task), log)
    for step in task.steps:
        request = verifier_image(step)
        if request is not None:
            machine.images.ensure(request, log)
    waited = machine.admission.waited - waited
    seconds = {"total": round(time.monotonic() - began - waited, 4), "waited": round(waited, 4)}
    return StageResult("expected", facts={"image": image_facts(image), "seconds": seconds})
