"""The steps of a build, and the key of what they make."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pytest_otval.images.bases import Base
from pytest_otval.images.copying import Source, digest
from pytest_otval.images.model import ImageConfig
from pytest_otval.images.oci import ARCHITECTURE
from pytest_otval.task.context import Context

FORMAT = 2
"""Goes into each key: to be raised when the same plan would make another image."""

BUILD_FOLDER = "/.otval-build"
"""Where a build's own files lie in its container."""

_IN_KEY = ("env", "workdir", "user", "entrypoint", "cmd", "shell", "volumes")
"""What of the configuration changes how an image's programs run."""


@dataclass(frozen=True, slots=True)
class RunStep:
    """RUN."""

    line: int
    text: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    workdir: str
    user: str | None
    script: str = ""
    """A here-document that begins with ``#!``: a file that ``argv`` names."""


@dataclass(frozen=True, slots=True)
class CopyStep:
    """COPY or ADD of files of the context, of here-documents, or of what ADD fetches."""

    line: int
    text: str
    sources: tuple[Source, ...]
    destination: str
    """Absolute, without a slash at its end."""
    into_folder: bool
    """The destination ends with a slash: a folder for sure; else it depends on what the image has there."""
    owner: str
    """``user[:group]`` of --chown, or ""."""
    mode: str
    """--chmod as ``modes.parsed_mode`` returns it, or ""."""


@dataclass(frozen=True, slots=True)
class CopyFromStep:
    """COPY --from: files of another stage or of another image."""

    line: int
    text: str
    origin: BuildPlan
    paths: tuple[str, ...]
    """Absolute; patterns by the rules of Go's ``filepath.Match``."""
    destination: str
    into_folder: bool
    owner: str
    mode: str


@dataclass(frozen=True, slots=True)
class WorkdirStep:
    """WORKDIR makes its folder, and gives it to who USER named."""

    line: int
    text: str
    path: str
    user: str | None = None


Step = RunStep | CopyStep | CopyFromStep | WorkdirStep


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """What has to be done to make an image: steps over a base. A stage over another has the steps of both."""

    key: str
    base: Base
    steps: tuple[Step, ...]
    config: ImageConfig
    file: str
    """The Dockerfile as messages name it, or ""."""
    context: Context | None
    needs_uid_mapping: str | None
    """"FILE:LINE: what" of the first step that needs owners or users, or None."""

    def origins(self) -> Iterator[BuildPlan]:
        """Yield the plans whose images COPY --from reads, each once."""
        seen = set()
        for step in self.steps:
            if isinstance(step, CopyFromStep) and step.origin.key not in seen:
                seen.add(step.origin.key)
                yield step.origin


def base_plan(base: Base, all_root: bool) -> BuildPlan:
    """Return the plan of a base as it is."""
    needs = f"{base.name} runs as user {base.config.user}" if base.config.user else None
    return BuildPlan(image_key(base, (), base.config, None, all_root), base, (), base.config, "", None, needs)


def files_plan(plan: BuildPlan, count: int, all_root: bool) -> BuildPlan:
    """Return the plan of the first ``count`` steps, for its files alone: whoever has the same steps shares the image.

    Raises CopyError where a file of the context cannot be read.
    """
    if count == 0:
        return base_plan(plan.base, all_root)
    steps, config = plan.steps[:count], ImageConfig()
    key = image_key(plan.base, steps, config, plan.context, all_root)
    return replace(plan, key=key, steps=steps, config=config)


def first_copy(plan: BuildPlan) -> int:
    """Return how many steps stand before the first that copies, where a RUN is among them; else 0.

    Tasks of one dataset often install the same packages before each copies its own files.
    """
    copies = (number for number, step in enumerate(plan.steps) if isinstance(step, CopyStep | CopyFromStep))
    count = next(copies, 0)
    return count if any(isinstance(step, RunStep) for step in plan.steps[:count]) else 0


def last_command(plan: BuildPlan) -> int:
    """Return how many steps there are up to the last one that needs a container; what follows only adds files."""
    later = (number for number, step in enumerate(plan.steps) if not _only_adds(step))
    return max(later, default=-1) + 1


def _only_adds(step: Step) -> bool:
    """Archives are unpacked by a program in the container, since no archive of a task is read here."""
    return isinstance(step, WorkdirStep) or (
        isinstance(step, CopyStep) and all(source.archive is None and not source.url for source in step.sources)
    )


def image_key(base: Base, steps: tuple[Step, ...], config: ImageConfig, context: Context | None, all_root: bool) -> str:
    """Return the sha256 over everything that decides an image: no path of the host, time or name of a machine.

    Raises CopyError where a file of the context cannot be read.
    """
    values = config.as_dict()
    parts = {
        "format": FORMAT,
        "architecture": ARCHITECTURE,
        "base": base.name,
        "all_root": all_root,
        "config": {name: values[name] for name in _IN_KEY},
        "steps": [_step_for_key(step, context) for step in steps],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _step_for_key(step: Step, context: Context | None) -> dict[str, Any]:
    """Neither line nor spelling matters."""
    if isinstance(step, RunStep | WorkdirStep):
        values = asdict(step)
        del values["line"], values["text"]
        return values
    where = [step.destination, step.into_folder, step.owner, step.mode]
    if isinstance(step, CopyFromStep):
        return {"copy_from": step.origin.key, "paths": step.paths, "to": where}
    assert context is not None
    return {"copy": [digest(context, source) for source in step.sources], "to": where}
