"""static: are the files of the task right?"""

from __future__ import annotations

from pytest_otval.checks.registry import run_checks
from pytest_otval.core import Severity, StageResult
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import Question

SHOWN = 20


def answer(machine: Machine, question: Question) -> StageResult:
    """Run every check; findings that are errors fail the stage, others are told."""
    findings = run_checks(question.task, question.settings, machine.checks.values())
    facts = {"checks": [finding.as_dict() for finding in findings]}
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if not errors:
        return StageResult("expected", facts=facts)
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    log = "\n".join(str(finding) for finding in errors[:SHOWN])
    return StageResult("static-findings", f"{errors[0]}{more}", log, facts)
