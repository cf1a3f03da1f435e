"""build: do the images of the task build, and does the agent's give nothing away?"""

from __future__ import annotations

import time

from pytest_otval.checks.cache import Subject
from pytest_otval.core import Finding, StageResult
from pytest_otval.images.model import Image
from pytest_otval.leaks.scan import scan
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import BUILD_LOG, Question, agent_image, image_facts, require_runnable, verifier_image
from pytest_otval.stages.static import allows_of, judged


def answer(machine: Machine, question: Question) -> StageResult:
    """Make the image of the agent's phase and those of separate verifiers, or find them in the store, and look in."""
    task = question.task
    require_runnable(task)
    began, waited = time.monotonic(), machine.admission.waited
    log = question.evidence / BUILD_LOG
    image = machine.images.ensure(agent_image(task), log)
    for step in task.steps:
        request = verifier_image(step)
        if request is not None:
            machine.images.ensure(request, log)
    findings = _leaks(machine, question, image)
    waited = machine.admission.waited - waited
    seconds = {"total": round(time.monotonic() - began - waited, 4), "waited": round(waited, 4)}
    severity = machine.settings.verdict.severity
    return judged(findings, severity, "image-leaks", image=image_facts(image), seconds=seconds)


def _leaks(machine: Machine, question: Question, image: Image) -> tuple[Finding, ...]:
    """Return what the agent's image gives away, from what was found before in the same image for the same task.

    A verifier's own image may hold the tests.
    """
    task, settings = question.task, question.settings
    allows = allows_of(settings)
    # An image that is built may be the very one that is taken as it is otherwise, and then all of it counts.
    content = f"{question.digest} {image.key} {image.content} {machine.settings.verdict.force_build}"
    subject = Subject(task.dataset, task.name, content, settings.oracle, allows)
    found = machine.leaks.get(subject) if question.digest else None
    if found is None:
        base = machine.images.base_files(agent_image(task))
        found = scan(task, image.files, base, allows, machine.scratch.folder)
        if question.digest:
            machine.leaks.put(subject, found)
    return found
