"""What a stage is asked, and what keeps a question from being asked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.core import Conclusion, Isolation, Severity
from pytest_otval.images.model import Image, ImageRequest
from pytest_otval.sandbox.base import Sandbox
from pytest_otval.sandbox.gpus import node_gpus, require_gpus
from pytest_otval.task.dataset import DatasetSettings
from pytest_otval.task.load import Step, Task
from pytest_otval.task.model import TaskConfig, TaskOS
from pytest_otval.task.owners import needs_owner
from pytest_otval.task.reading import NotReadableError, read_regular, target_within
from pytest_otval.trial.layer import environments_of, limits_of

COMPOSE = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml")
MAX_SCRIPT_BYTES = 1024 * 1024
BUILD_LOG = "build.txt"
"""Of a question's evidence: what the builds of its images said, where one had to be built."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a task before it is loaded."""

    dataset: str
    task: str
    digest: str
    settings: DatasetSettings


@dataclass(frozen=True, slots=True)
class Question:
    """One stage about one task."""

    task: Task
    settings: DatasetSettings
    evidence: Path
    """Folder for logs; made when something is written."""
    attempt: int = 0
    """Which attempt it is, where a stage is asked more than once."""
    digest: str = ""
    """Of the task's files; empty where nobody took it."""
    isolation: Isolation | None = None
    """The level at which it is asked, where several are tried; None: the one that run, task or dataset say."""
    model: str = ""
    """Who makes the attempt, of a stage that models are asked at."""


def config_of(task: Task) -> TaskConfig:
    """Return the task's configuration. Raises Conclusion ``bad-task`` with the finding that says why there is none."""
    if task.config is not None:
        return task.config
    errors = [finding for finding in task.findings if finding.severity is Severity.ERROR]
    raise Conclusion("bad-task", str(errors[0]) if errors else "task.toml cannot be read")


def require_runnable(task: Task, here: bool = True) -> None:
    """Raise the Conclusion of a task that no sandbox here can run; else than ``here``: that none can, anywhere."""
    config_of(task)
    _require_inside(task)
    folders = [task.path / "environment", *(step.verifier_image.context for step in task.steps if step.verifier_image)]
    for folder in folders:
        for name in COMPOSE:
            if (folder / name).is_file():
                raise Conclusion("compose", f"{folder.name}/{name} needs docker compose")
    for environment in environments_of(task):
        if environment.os is TaskOS.WINDOWS:
            raise Conclusion("windows", "[environment] os = 'windows'")
        if environment.tpu:
            raise Conclusion("no-gpu", "[environment] asks for TPUs")
        if environment.gpus and here:
            require_gpus(node_gpus(), environment.gpus, environment.gpu_types or ())


def _require_inside(task: Task) -> None:
    """Nothing that a link out of the task leads to may be copied into its containers."""
    folders = {task.path / "setup_files"}
    for step in task.steps:
        folders |= {step.solution, step.tests}
    for folder in sorted(folders):
        if os.path.lexists(folder) and target_within(folder, task.path) is None:
            raise Conclusion("bad-task", f"{folder.relative_to(task.path)} leads out of the task: make it a folder")


def agent_image(task: Task) -> ImageRequest:
    """Return the request for the image of the agent's phase."""
    environment = config_of(task).environment
    return ImageRequest(
        task.path / "environment", environment.docker_image, environment.build_timeout_sec, limits_of(environment)
    )


def verifier_image(step: Step) -> ImageRequest | None:
    """Return the request for the image of a separate verifier."""
    image = step.verifier_image
    if image is None:
        return None
    environment = image.environment
    return ImageRequest(image.context, image.docker_image, environment.build_timeout_sec, limits_of(environment))


def image_requests(task: Task) -> list[ImageRequest]:
    """Return the requests for all its images: the agent's, then those of separate verifiers."""
    return [agent_image(task), *filter(None, map(verifier_image, task.steps))]


def image_facts(image: Image) -> dict[str, str]:
    """Return an image's part of a ledger line."""
    return {"key": image.key, "content": image.content, "base": image.base}


def require_owners(task: Task, image_user: str | None, sandbox: Sandbox) -> None:
    """Raise Conclusion ``needs-uid-mapping`` for a task that sets owners or changes users where that is lost.

    The headline names the line that needs it. ``image_user`` is the one its image's programs run as.
    """
    if sandbox.maps_uids:
        return
    for where, user in _declared_users(task, image_user):
        if user is not None and str(user).partition(":")[0] not in ("root", "0", ""):
            raise Conclusion("needs-uid-mapping", f"{where}: user {user}")
    for path in _scripts(task):
        try:
            text = read_regular(path, MAX_SCRIPT_BYTES).decode(errors="replace")
        except (NotReadableError, FileNotFoundError):
            continue
        found = needs_owner(text, packages=True)
        if found is not None:
            raise Conclusion("needs-uid-mapping", f"{path.relative_to(task.path)}:{found[0]}: {found[1]}")


def _declared_users(task: Task, image_user: str | None) -> Iterator[tuple[str, str | int | None]]:
    yield "environment/Dockerfile USER", image_user
    for step in task.steps:
        yield "task.toml [agent]", step.agent_user
        yield "task.toml [verifier]", step.verifier_user
        for hook in step.collect:
            yield "task.toml [[verifier.collect]]", hook.user


def _scripts(task: Task) -> Iterator[Path]:
    yield task.path / "setup_files" / "setup.sh"
    for step in task.steps:
        yield step.solution / "solve.sh"
        yield step.tests / "setup.sh"
        yield step.tests / "test.sh"
        if step.workdir is not None:
            yield step.workdir / "setup.sh"
