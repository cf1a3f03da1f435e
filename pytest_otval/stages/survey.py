"""What a dataset says about itself as a whole: one quick look at three files of each task."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli

from pytest_otval.core import Conclusion
from pytest_otval.task.source import FolderSource, TaskSource

TASK_TOML, INSTRUCTION, DOCKERFILE = "task.toml", "instruction.md", "environment/Dockerfile"
READ = (TASK_TOML, INSTRUCTION, DOCKERFILE)
MAX_BYTES = 256 * 1024
"""Of each."""

MAX_PACKED = 20_000
"""Tasks of a packed dataset that are looked at; each is unpacked in memory up to what is wanted."""

_FROM = re.compile(
    rb"^[ \t]*FROM[ \t]+(?:--platform=\S+[ \t]+)?(\S+)(?:[ \t]+AS[ \t]+(\S+))?", re.MULTILINE | re.IGNORECASE
)
_ARG = re.compile(rb"^[ \t]*ARG[ \t]+(\w+)=(\S+)", re.MULTILINE | re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))")
_DOCKER_IMAGE = re.compile(rb"^[ \t]*docker_image[ \t]*=[ \t]*[\"']([^\"'\n]+)[\"']", re.MULTILINE)
_TASK_TABLE = re.compile(rb"^\[task\][^\n]*(?:\n(?!\[)[^\n]*)*", re.MULTILINE)
_NAME = re.compile(rb"^[ \t]*name[ \t]*=[ \t]*[\"']([^\"'\n\\]*)[\"']", re.MULTILINE)
_OTHER_SPELLING = re.compile(rb"^[ \t]*(?:task[ \t]*[.=]|[\"']task|\[[ \t]*[\"']?[ \t]*task[ \t\"'.\]])", re.MULTILINE)


@dataclass(slots=True)
class Survey:
    """What three files of each task say."""

    others: Sequence[str] = ()
    """Folders among the tasks that are none."""
    tasks: int = 0
    left_out: int = 0
    """Tasks that were not read."""
    names: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Tasks by ``[task].name``."""
    instructions: dict[bytes, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Tasks by what their instruction says, whatever its blanks and its case."""
    sources: dict[bytes, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Tasks by instruction and Dockerfile as they are: only tasks with equal ones can be the same."""
    bases: Counter[str] = field(default_factory=Counter)
    """How many tasks stand on a base image, by its name."""

    def add(self, name: str, files: dict[str, bytes]) -> None:
        """Take a task."""
        toml, instruction, dockerfile = (files.get(path, b"") for path in READ)
        said = task_name(toml)
        if said:
            self.names[said].append(name)
        words = b" ".join(instruction.lower().split())
        if words:
            self.instructions[hashlib.sha256(words).digest()].append(name)
            self.sources[hashlib.sha256(instruction + b"\0" + dockerfile).digest()].append(name)
        self.bases.update(set(bases_of(toml, dockerfile)))


def survey(source: TaskSource) -> Survey:
    """Look at every task. Raises OtvalUsageError where a packed dataset cannot be used as a whole."""
    names, others = source.names()
    read = names if isinstance(source, FolderSource) else names[:MAX_PACKED]
    found = Survey(others, len(names), len(names) - len(read))
    for name in read:
        try:
            found.add(name, source.peek(name, READ, MAX_BYTES))
        except Conclusion:
            # The task's own item tells.
            found.left_out += 1
    return found


def task_name(toml: bytes) -> str:
    """Return ``[task].name`` of a task.toml; empty where there is none, or none that can be read."""
    if b"task" not in toml:
        return ""
    table = _TASK_TABLE.search(toml)
    if table is not None:
        found = _NAME.search(table[0])
        return found[1].decode("utf-8", "replace") if found else ""
    return parsed_name(toml) if _OTHER_SPELLING.search(toml) else ""


def parsed_name(toml: bytes) -> str:
    """Return the same by a whole parser."""
    data = parsed(toml)
    table = data.get("task")
    name = table.get("name") if isinstance(table, dict) else None
    return name if isinstance(name, str) else ""


def parsed(toml: bytes) -> dict[str, Any]:
    """Return the data of a TOML file; none where it is not valid."""
    try:
        return tomli.loads(toml.decode())
    except (ValueError, RecursionError):
        return {}


def bases_of(toml: bytes, dockerfile: bytes) -> Iterator[str]:
    """Yield the images that a task stands on, as they are written, with defaults of ARG put in."""
    if image := _DOCKER_IMAGE.search(toml):
        yield image[1].decode("utf-8", "replace")
        return
    arguments: dict[str, str] = {}
    if b"$" in dockerfile:
        found = _ARG.findall(dockerfile)
        arguments = {key.decode(): value.decode("utf-8", "replace").strip("\"'") for key, value in found}
    stages: set[str] = set()
    for raw, alias in _FROM.findall(dockerfile):
        name = _VARIABLE.sub(
            lambda found: arguments.get(str(found[1] or found[3]), str(found[2] or "")), raw.decode("utf-8", "replace")
        )
        if name.lower() not in stages and name not in ("scratch", ""):
            yield name
        stages.add(alias.decode("utf-8", "replace").lower())


_LICENCES = re.compile(r"(?:un)?licen[cs]e|copying", re.IGNORECASE)
_LICENCE_KEY = re.compile(rb"^[ \t]*licen[cs]e[\w-]*[ \t]*=", re.MULTILINE | re.IGNORECASE)


def has_licence(dataset: Path, manifest: bytes) -> bool:
    """Whether the dataset, or the repository that it is in, has a licence, or its dataset.toml names one."""
    if _LICENCE_KEY.search(manifest):
        return True
    for folder in (dataset, *dataset.parents[:2]):
        try:
            if any(_LICENCES.match(path.name) for path in folder.iterdir()):
                return True
        except OSError:
            continue
    return False
