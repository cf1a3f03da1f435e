"""Which findings somebody allows, and why. They stay in the ledger, with the reason, and fail nothing.

Said by a comment in the file (``directives``), under ``[metadata.otval.allow]`` in task.toml, in ``[[otval.allow]]`` of
dataset.toml for many tasks, or by ``[metadata.harbor.lint]``. What allows nothing is a finding of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tomli

from pytest_otval.checks.context import MAX_TEXT, CheckContext
from pytest_otval.checks.directives import MARK, directives
from pytest_otval.checks.elsewhere import AT_BUILD, ELSEWHERE, NEVER_ALLOWED
from pytest_otval.checks.harbor_lint import turned_off
from pytest_otval.core import Finding
from pytest_otval.task.allowed import Allowance
from pytest_otval.task.dataset import harbor_lint
from pytest_otval.task.lines import Lines

TASK_TOML = "task.toml"
TABLE = ("metadata", "otval", "allow")

MAX_FILES = 5000
"""Files that are looked at for comments of ours, besides those with findings."""
MAX_REASON = 300


@dataclass(frozen=True, slots=True)
class DatasetAllows:
    """What a dataset.toml allows; what has expired is not in it."""

    allow: Sequence[Allowance] = ()
    harbor_lint: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Allow:
    """One reason for one check."""

    check: str
    reason: str
    where: str
    """What the finding shows."""
    path: str
    line: int | None
    covers: Callable[[Finding], bool] = lambda finding: True
    must_be_used: bool = True
    used: bool = False


def with_allowed(
    context: CheckContext,
    findings: Collection[Finding],
    asked: Collection[str],
    dataset: DatasetAllows,
    at_build: bool = False,
) -> Iterator[Finding]:
    """Yield the findings, those that are allowed with the reason, and a finding for each allowance without effect.

    ``asked`` are the ids of the checks that ran: of others nobody knows whether they would find something.
    ``at_build`` says that the findings are about the image; what allows findings of the other stage is left to that.
    """
    allows: list[_Allow] = []
    known = {*asked, *ELSEWHERE}
    for found in _said(context, findings, dataset):
        if isinstance(found, Finding):
            if not at_build:
                yield found
        elif (found.check in AT_BUILD) != at_build:
            continue
        elif found.check not in known:
            yield _told("allow-unknown", f"there is no check {found.check!r}", found.path, found.line)
        else:
            allows.append(found)
    for finding in findings:
        applying = [allow for allow in allows if allow.check == finding.check and allow.covers(finding)]
        if not applying or finding.check in NEVER_ALLOWED:
            yield finding
            continue
        for allow in applying:
            allow.used = True
        yield replace(finding, allowed=applying[0].reason[:MAX_REASON], allowed_by=applying[0].where)
    for allow in allows:
        if allow.check in NEVER_ALLOWED:
            yield _told("allow-unused", f"{allow.check} cannot be allowed: correct the file", allow.path, allow.line)
        elif allow.must_be_used and not allow.used:
            message = f"allows {allow.check}, which is not found {'here' if allow.path != TASK_TOML else 'in the task'}"
            yield _told("allow-unused", message, allow.path, allow.line)


def _told(check: str, message: str, path: str, line: int | None) -> Finding:
    return Finding(check, ELSEWHERE[check].severity, message, path, line, ELSEWHERE[check].fix)


def _said(context: CheckContext, findings: Collection[Finding], dataset: DatasetAllows) -> Iterator[_Allow | Finding]:
    yield from _in_files(context, {finding.path for finding in findings})
    metadata = _metadata(context)
    yield from _in_task_toml(context, metadata)
    for entry in dataset.allow:
        if entry.covers(context.task.name):
            yield _Allow(entry.check, entry.reason, str(entry), TASK_TOML, None, must_be_used=entry.names_one)
    own = harbor_lint(metadata)
    off, refused = turned_off(dataset.harbor_lint, own) if own or dataset.harbor_lint else ({}, [])
    if refused and own:
        line = Lines(context.task.source).of(("metadata", "harbor", "lint"))
        yield _told("allow-unknown", f"`harbor lint` refuses {', '.join(refused)}", TASK_TOML, line)
    for check, rule in off.items():
        where = "[metadata.harbor.lint]"
        yield _Allow(check, f"harbor lint does not apply {rule}", where, TASK_TOML, None, must_be_used=False)


def _in_files(context: CheckContext, with_findings: Collection[str]) -> Iterator[_Allow | Finding]:
    files = [entry for entry in context.tree.entries.values() if entry.kind == "file" and entry.size <= MAX_TEXT]
    for number, entry in enumerate(files):
        if number >= MAX_FILES and entry.path not in with_findings:
            continue
        raw = context.glance(entry)
        if raw is not None and MARK in raw and b"\0" not in raw:
            yield from _in_text(entry.path, raw.decode("utf-8", "replace"))


def _in_text(path: str, text: str) -> Iterator[_Allow | Finding]:
    for said in directives(path, text):
        if not said.check:
            message = "names no check: write otval: allow CHECK-ID because REASON"
            yield _told("allow-unknown", message, path, said.line)
        elif not said.reason:
            yield _told("allow-no-reason", f"allows {said.check} without a reason", path, said.line)
        else:

            def covers(finding: Finding, covers_line: Callable[[int | None], bool] = said.covers) -> bool:
                return finding.path == path and covers_line(finding.line)

            yield _Allow(said.check, said.reason, f"{path}:{said.line}", path, said.line, covers)


def _metadata(context: CheckContext) -> Any:
    task = context.task
    if task.config is not None:
        return task.config.metadata
    # What Harbor's schema refuses may be TOML all the same.
    try:
        return tomli.loads(task.source).get("metadata") if "metadata" in task.source else None
    except (ValueError, RecursionError):
        return None


def _in_task_toml(context: CheckContext, metadata: Any) -> Iterator[_Allow | Finding]:
    table = metadata
    for key in TABLE[1:]:
        table = table.get(key) if isinstance(table, dict) else None
    if table is None:
        return
    lines = Lines(context.task.source)
    if not isinstance(table, dict):
        yield _told("allow-unknown", f"{'.'.join(TABLE)} is no table of reasons by id", TASK_TOML, lines.of(TABLE))
        return
    for check, reason in table.items():
        line = lines.of((*TABLE, check))
        if isinstance(reason, str) and reason.strip():
            yield _Allow(check, reason.strip(), f"{TASK_TOML}:{line}", TASK_TOML, line)
        else:
            yield _told("allow-no-reason", f"allows {check} without a reason", TASK_TOML, line)
