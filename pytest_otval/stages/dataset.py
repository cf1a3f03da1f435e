"""static, of a dataset as a whole: its dataset.toml, and what only all of its tasks together tell."""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_otval.attacks.battery import battery
from pytest_otval.checks.directives import Directive, directives
from pytest_otval.checks.elsewhere import ELSEWHERE, NEVER_ALLOWED
from pytest_otval.core import Conclusion, Finding, OtvalUsageError, Severity, StageResult, printable
from pytest_otval.stages.machine import Machine
from pytest_otval.stages.static import judged
from pytest_otval.stages.survey import READ, Survey, has_licence, parsed, parsed_name, survey
from pytest_otval.task.dataset import DATASET_TOML, MAX_TOML_BYTES, Dataset
from pytest_otval.task.digest import task_digest
from pytest_otval.task.lines import Lines
from pytest_otval.task.reading import NotReadableError, read_regular
from pytest_otval.task.source import FolderSource, TaskSource

MAX_GROUPS = 50
"""Findings of one kind."""
SHOWN_NAMES = 5
"""Of a group of tasks."""
MAX_COMPARED = 20_000
"""Tasks that are compared by all of their files."""
MAX_UNPACKED = 1000
MAX_BASES = 500
"""Base images that are looked for in the store."""


def dataset_answer(machine: Machine, dataset: Dataset, source: TaskSource) -> StageResult:
    """Answer for a dataset.toml."""
    findings = [*dataset.findings, *_findings(machine, dataset, source)]
    findings.sort(key=lambda found: (found.path, found.line or 0, found.check, found.message))
    return judged(list(_with_allowed(findings, _manifest(dataset))), machine.settings.verdict.severity)


def _findings(machine: Machine, dataset: Dataset, source: TaskSource) -> Iterator[Finding]:
    try:
        found = survey(source)
    except OtvalUsageError as error:
        raise Conclusion("dataset-unreadable", str(error)) from None
    for other in found.others[:MAX_GROUPS]:
        yield _told("ds-no-task-toml", f"the folder {other!r} is no task: it has no task.toml", f"tasks/{other}")
    if found.left_out:
        yield _told("ds-not-all-read", f"{found.left_out} of {found.tasks} tasks were not read")
    same = yield from _same_content(found, source, machine)
    yield from _same_names(found, source)
    yield from _same_instructions(found, source, same)
    yield from _bases(found, machine)
    if not has_licence(dataset.path, _manifest(dataset)):
        yield _told("ds-licence", "the dataset names no licence")
    yield from _unknown(dataset, "ds-accepted-unknown", dataset.settings.accepted, battery())
    if dataset.settings.levels:
        yield from _unknown(dataset, "ds-levels-unknown", dataset.settings.levels, source.names()[0])
    yield from _allowances(dataset, source, {*machine.checks, *ELSEWHERE})


def _told(check: str, message: str, path: str = DATASET_TOML, severity: Severity | None = None) -> Finding:
    told = ELSEWHERE[check]
    return Finding(check, severity or told.severity, printable(message), printable(path), None, told.fix)


def _manifest(dataset: Dataset) -> bytes:
    try:
        return read_regular(dataset.path / DATASET_TOML, MAX_TOML_BYTES)
    except (OSError, NotReadableError):
        return b""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more


def _place(source: TaskSource, name: str) -> str:
    return os.path.relpath(source.anchor(name), source.path)


def _capped(groups: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield the largest groups of more than one, as many as anybody looks at."""
    several = sorted((group for group in groups if len(group) > 1), key=lambda group: (-len(group), group))
    yield from several[:MAX_GROUPS]


def _same_content(found: Survey, source: TaskSource, machine: Machine) -> Generator[Finding, None, set[str]]:
    """Tell tasks that are the same in all their files, perhaps but for task.toml; return the names of all of them."""
    limit = MAX_COMPARED if isinstance(source, FolderSource) else MAX_UNPACKED
    same: set[str] = set()
    compared = 0
    groups: list[list[str]] = []
    for candidates in found.sources.values():
        if len(candidates) == 1 or compared + len(candidates) > limit:
            continue
        compared += len(candidates)
        by_content: dict[str, list[str]] = {}
        for name in candidates:
            by_content.setdefault(_content(source, name, machine), []).append(name)
        groups += [group for content, group in by_content.items() if content]
    for group in _capped(groups):
        same.update(group)
        tomls = [source.peek(name, READ[:1], MAX_TOML_BYTES).get(READ[0], b"") for name in group]
        if len(set(tomls)) == 1:
            message, severity = "have the same content", Severity.WARNING
        elif len({repr(_meant(toml)) for toml in tomls}) == 1:
            message, severity = "have the same content but for names and metadata in task.toml", Severity.WARNING
        else:
            message, severity = "differ in task.toml only", Severity.INFO
        text = f"{len(group)} tasks {message}: {_listed(group)}"
        yield _told("ds-duplicate-task", text, _place(source, group[1]), severity)
    return same


def _meant(toml: bytes) -> Mapping[str, object]:
    """Return what task.toml says of a trial."""
    return {key: value for key, value in sorted(parsed(toml).items()) if key not in ("task", "metadata")}


def _content(source: TaskSource, name: str, machine: Machine) -> str:
    """Return a digest of a task's files without task.toml; empty where it cannot be read."""
    try:
        # Not where a task is unpacked that somebody has at hand.
        folder = source.folder(name, machine.scratch.folder / "compared")
    except Conclusion:
        return ""
    try:
        return task_digest(folder, without=READ[0])
    finally:
        if not isinstance(source, FolderSource):
            shutil.rmtree(folder, ignore_errors=True)


def _same_names(found: Survey, source: TaskSource) -> Iterator[Finding]:
    for group in _capped(found.names.values()):
        said = [parsed_name(source.peek(name, READ[:1], MAX_TOML_BYTES).get(READ[0], b"")) for name in group]
        if len(set(said)) == 1 and said[0]:
            message = f"{len(group)} tasks have [task].name {said[0]!r}: {_listed(group)}"
            yield _told("ds-duplicate-name", message, _place(source, group[1]))


def _same_instructions(found: Survey, source: TaskSource, same: set[str]) -> Iterator[Finding]:
    for group in _capped(found.instructions.values()):
        if not same.issuperset(group):
            message = f"{len(group)} tasks have one instruction: {_listed(group)}"
            yield _told("ds-same-instruction", message, _place(source, group[1]))


def _bases(found: Survey, machine: Machine) -> Iterator[Finding]:
    most = found.bases.most_common(MAX_BASES)
    if len(most) > 1:
        shown = ", ".join(f"{name} ({count})" for name, count in most[:SHOWN_NAMES])
        more = ", ..." if len(most) > SHOWN_NAMES else ""
        yield _told("ds-base-images", f"{found.tasks} tasks stand on {len(found.bases)} base images: {shown}{more}")
    absent = machine.bases_not_here(name for name, _ in most)
    if absent:
        message = f"{len(absent)} of {len(most)} base images are not in the store: {_listed(absent)}"
        yield _told("ds-images-absent", message)


_TABLES = {"ds-accepted-unknown": ("accepted", "attack"), "ds-levels-unknown": ("levels", "task")}
"""The table of [otval] that a check looks at, and what its entries name."""


def _unknown(dataset: Dataset, check: str, named: Iterable[str], known: Iterable[str]) -> Iterator[Finding]:
    """Tell which entries of a table name nothing that is known."""
    unknown = set(named) - set(known)
    if not unknown:
        return
    table, what = _TABLES[check]
    lines = Lines(_manifest(dataset).decode("utf-8", "replace"))
    for name in sorted(unknown):
        near = difflib.get_close_matches(name, list(known), n=1)
        hint = f", did you mean {near[0]}?" if near else ""
        finding = _told(check, f"otval.{table}: there is no {what} {name!r}{hint}")
        yield replace(finding, line=lines.of(("otval", table, name)))


def _allowances(dataset: Dataset, source: TaskSource, known: set[str]) -> Iterator[Finding]:
    """Tell which entries of [[otval.allow]] can have no effect in any task."""
    names = source.names()[0] if dataset.settings.allow else []
    for entry in dataset.settings.allow:
        message = ""
        if entry.check not in known:
            yield replace(_told("allow-unknown", f"there is no check {entry.check!r}"), line=entry.line)
        elif entry.check in NEVER_ALLOWED:
            message = f"{entry.check} cannot be allowed: correct the file"
        elif entry.check.startswith("ds-"):
            message = f"{entry.check} is about the dataset: write a comment, # otval: allow {entry.check} because ..."
        elif not any(map(entry.covers, names)):
            message = f"no task is called {entry.tasks!r}"
        if message:
            yield replace(_told("allow-unused", message), line=entry.line)


def _with_allowed(findings: Sequence[Finding], manifest: bytes) -> Iterator[Finding]:
    """Yield the findings of a dataset, those that a comment in dataset.toml allows with the reason.

    Such a comment covers all findings of its id, since most are about no line.
    """
    said: dict[str, Directive] = {}
    for directive in directives(DATASET_TOML, manifest.decode("utf-8", "replace")):
        if not directive.reason:
            message = f"allows {directive.check} without a reason" if directive.check else "names no check"
            yield replace(_told("allow-no-reason", message), line=directive.line)
        else:
            said.setdefault(directive.check, directive)
    used = set()
    for finding in findings:
        allowing = said.get(finding.check)
        if allowing is None or finding.check in NEVER_ALLOWED:
            yield finding
            continue
        used.add(finding.check)
        yield replace(finding, allowed=allowing.reason, allowed_by=f"{DATASET_TOML}:{allowing.line}")
    for check, directive in said.items():
        if check not in used:
            known = ELSEWHERE.get(check)
            of_datasets = known is not None and known.family == "dataset"
            message = f"allows {check}, which is not found" if of_datasets else f"{check} is not about datasets"
            yield replace(_told("allow-unused", message), line=directive.line)
