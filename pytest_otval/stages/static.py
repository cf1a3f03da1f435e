"""static: are the files of the task right?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_otval.checks.allow import DatasetAllows
from pytest_otval.checks.cache import Subject
from pytest_otval.checks.registry import run_checks
from pytest_otval.core import Finding, Severity, StageResult
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import Known, Question
from pytest_otval.task.dataset import DatasetSettings

SHOWN = 20
CACHE = "cache/static"
"""Where an answer says that it comes from."""


def answer(machine: Machine, question: Question) -> StageResult:
    """Run every check; findings that nobody allows and that are bad enough fail the stage, others are told."""
    task, settings = question.task, question.settings
    allows = allows_of(settings)
    findings = run_checks(task, settings, machine.checks.values(), allows)
    if question.digest and machine.findings is not None:
        subject = Subject(task.dataset, task.name, question.digest, settings.oracle, allows)
        machine.findings.put(subject, findings)
    return judged(findings, machine.settings.verdict.severity)


def recall(machine: Machine, known: Known) -> StageResult | None:
    """Return the answer from what was found before in a task of the same content, if that is still there."""
    if machine.findings is None:
        return None
    subject = Subject(known.dataset, known.task, known.digest, known.settings.oracle, allows_of(known.settings))
    findings = machine.findings.get(subject)
    return None if findings is None else judged(findings, machine.settings.verdict.severity, cached_from=CACHE)


def allows_of(settings: DatasetSettings) -> DatasetAllows:
    """Return what a dataset allows."""
    return DatasetAllows(settings.allow, settings.harbor_lint)


def judged(
    findings: Sequence[Finding], severity: Severity, reason: str = "static-findings", **facts: Any
) -> StageResult:
    """Return the answer that findings give; those of a severity, and worse ones, fail unless they are allowed."""
    facts["checks"] = [finding.as_dict() for finding in findings]
    failing = [finding for finding in findings if finding.severity.at_least(severity) and not finding.allowed]
    if not failing:
        return StageResult("expected", facts=facts)
    failing.sort(key=lambda finding: not finding.severity.at_least(Severity.ERROR))
    more = f" (and {len(failing) - 1} more)" if len(failing) > 1 else ""
    log = "\n".join(str(finding) for finding in failing[:SHOWN])
    return StageResult(reason, f"{failing[0]}{more}", log, facts)
