"""``--otval-fix``: repairs a task before its static stage is asked, so that the answer is about the repaired files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_otval.checks.cache import Subject
from pytest_otval.checks.context import MAX_TEXT, CheckContext
from pytest_otval.checks.fixes import Fix, NotFixedError, State, diff, make_change, proposed, repairing
from pytest_otval.checks.registry import run_checks
from pytest_otval.core import Finding
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.question import Known
from pytest_otval.stages.static import allows_of
from pytest_otval.task.digest import task_digest
from pytest_otval.task.load import load_task

MAX_ROUNDS = 5
"""A file gets one change in each."""


def fix_task(machine: Machine, folder: Path, known: Known) -> list[Fix]:
    """Repair what can surely be repaired; return what was changed, and what could not be.

    ``folder`` is the task's own, in place. Raises Conclusion as ``run_checks`` does.
    """
    repairs = repairing(machine.checks.values())
    before: dict[str, State] = {}
    after: dict[str, State] = {}
    checks: dict[str, list[str]] = {}
    troubles: list[Fix] = []
    digest = known.digest
    for _ in range(MAX_ROUNDS):
        findings = _findings(machine, folder, known, digest)
        if not any(finding.check in repairs and not finding.allowed for finding in findings):
            break
        context = CheckContext(load_task(folder, known.dataset), known.settings)
        changed = False
        troubles = []
        for check, change in proposed(context, findings, repairs):
            try:
                old, new = make_change(folder, change, MAX_TEXT)
            except NotFixedError as error:
                troubles.append(Fix(change.path, (check,), trouble=str(error)))
                continue
            before.setdefault(change.path, old)
            after[change.path] = new
            checks.setdefault(change.path, []).append(check)
            changed = True
        if not changed:
            break
        digest = task_digest(folder)
    made = [Fix(path, tuple(dict.fromkeys(ids)), diff(path, before[path], after[path])) for path, ids in checks.items()]
    return [*made, *troubles]


def _findings(machine: Machine, folder: Path, known: Known, digest: str) -> Sequence[Finding]:
    allows = allows_of(known.settings)
    subject = Subject(known.dataset, known.task, digest, known.settings.oracle, allows)
    findings = machine.findings.get(subject) if machine.findings is not None else None
    if findings is None:
        findings = run_checks(load_task(folder, known.dataset), known.settings, machine.checks.values(), allows)
        if machine.findings is not None:
            machine.findings.put(subject, findings)
    return findings
