"""Loading a task: task.toml read as Harbor reads it, and a finding for everything that is wrong with it.

Nothing here raises for any content of the task folder, follows a link out of it, or waits for a FIFO.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import tomli
from pydantic import ValidationError

from pytest_otval.core import Finding, Severity
from pytest_otval.task.audit import MAX_NOTES, audit
from pytest_otval.task.lines import Lines, dotted
from pytest_otval.task.model import TaskConfig
from pytest_otval.task.reading import NotReadableError, is_folder, is_regular, read_regular
from pytest_otval.task.steps import Step, VerifierImage, resolve_steps

__all__ = ["Step", "Task", "VerifierImage", "load_task"]

TASK_TOML = "task.toml"
MAX_TOML_BYTES = 1024 * 1024
"""A larger task.toml is refused: the largest known one has 40 KiB."""

MAX_MESSAGE = 300
"""Messages of parsers quote the file, which may hold anything."""

BOM = "\ufeff"

_REPOSITORY_KEYS = ("repo", "repository", "project")
"""Of ``[metadata]``: SWE-bench's word, others', and that of bugs by project."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task folder, as far as task.toml and file names tell."""

    path: Path
    dataset: str
    name: str
    config: TaskConfig | None
    """None: task.toml cannot be read as one; the findings say why."""
    findings: tuple[Finding, ...]
    """From parsing and schema alone."""
    source: str
    """Text of task.toml; empty where it is unreadable."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps in their order; empty without a config."""
        return resolve_steps(self.path, self.config) if self.config else ()

    @property
    def repository(self) -> str:
        """The repository that the task is about, as its metadata says (``repo``, ``repository``, ``project``)."""
        metadata = self.config.metadata if self.config else {}
        named = (metadata.get(key) for key in _REPOSITORY_KEYS)
        return next((value for value in named if isinstance(value, str)), "")

    @property
    def has_setup(self) -> bool:
        """Whether there is a setup_files/setup.sh to run before the agent."""
        folder = self.path / "setup_files"
        return is_folder(folder) and is_regular(folder / "setup.sh")


def load_task(path: Path, dataset: str) -> Task:
    """Load the task in the folder ``path``; its name is the folder's."""
    path = path.absolute()
    source, findings = _read(path / TASK_TOML)
    config = None
    if not findings:
        config, findings = _parsed(source)
    in_order = sorted(findings, key=lambda finding: finding.line or 0)
    return Task(path, dataset, path.name, config, tuple(in_order), source)


@lru_cache(maxsize=32)
def _parsed(source: str) -> tuple[TaskConfig | None, list[Finding]]:
    """Tasks that are made from a template often have the same task.toml; nobody changes what is read from it."""
    return _parse(source)


def _error(check: str, message: str, line: int | None = None, fix: str = "") -> Finding:
    shown = "".join(sign if sign.isprintable() else " " for sign in message[:MAX_MESSAGE])
    return Finding(check, Severity.ERROR, shown, TASK_TOML, line, fix)


def _read(path: Path) -> tuple[str, list[Finding]]:
    try:
        data = read_regular(path, MAX_TOML_BYTES)
    except FileNotFoundError:
        return "", [_error("toml-missing", "there is no task.toml", fix="add one: an empty file is valid")]
    except NotReadableError as error:
        return "", [_error("toml-unreadable", f"task.toml {error}", fix="make it a small regular file")]
    try:
        return data.decode(), []
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return "", [_error("toml-parse", f"byte 0x{data[error.start]:02x} is not UTF-8", line, "save it as UTF-8")]


def _parse(source: str) -> tuple[TaskConfig | None, list[Finding]]:
    if source.startswith(BOM):
        return None, [_error("toml-parse", "task.toml starts with a byte order mark", 1, "save it without BOM")]
    try:
        data = tomli.loads(source)
    except tomli.TOMLDecodeError as error:
        return None, [_error("toml-parse", f"task.toml is no TOML: {error.msg}", error.lineno)]
    except (ValueError, RecursionError) as error:
        # Beyond its grammar: integers of thousands of digits, hundreds of nested arrays.
        return None, [_error("toml-parse", f"task.toml is no TOML that can be read: {type(error).__name__}")]
    try:
        # Harbor's parser is the standard library's, which knows TOML 1.0; tomli knows 1.1, limits and line numbers.
        tomllib.loads(source)
    except (ValueError, RecursionError) as error:
        return None, [_error("toml-parse", f"task.toml is TOML 1.1, Harbor reads 1.0: {error}", _line_in(str(error)))]
    lines = Lines(source)
    findings = audit(data, lines)
    try:
        config = TaskConfig.model_validate(data)
    except ValidationError as error:
        return None, [*_refusals(error, data, lines), *findings]
    except (ValueError, OverflowError, RecursionError) as error:
        return None, [_error("toml-invalid", f"Harbor refuses task.toml: {type(error).__name__}"), *findings]
    return config, findings


def _line_in(message: str) -> int | None:
    match = re.search(r"at line (\d+)", message)
    return int(match[1]) if match else None


def _refusals(error: ValidationError, data: dict[str, Any], lines: Lines) -> list[Finding]:
    """One finding for each place that Harbor's schema refuses."""
    reasons: dict[tuple[str | int, ...], list[str]] = {}
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        path = _place(detail["loc"], data, missing=detail["type"] == "missing")
        reasons.setdefault(path, []).append(detail["msg"].removeprefix("Value error, "))
    # Of a union's branches the one that got deepest is the one that was meant.
    around = {path[:length] for path in reasons for length in range(len(path))}
    deepest = [path for path in reasons if path not in around]
    return [
        _error("toml-invalid", f"{dotted(path)}: {'; or '.join(reasons[path])}", lines.of(path))
        for path in deepest[:MAX_NOTES]
    ]


def _place(location: tuple[str | int, ...], data: Any, *, missing: bool) -> tuple[str | int, ...]:
    """Return the key path of an error: its location without the names of union branches."""
    path: tuple[str | int, ...] = ()
    for part in location:
        in_table = isinstance(data, dict) and part in data
        if in_table or (isinstance(data, list) and isinstance(part, int) and part < len(data)):
            data = data[part]
        elif not (missing and part == location[-1]):
            continue
        path = (*path, part)
    return path
