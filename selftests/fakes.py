"""Stand-ins for what selftests do not want to have: a sandbox without processes, a machine without a sandbox."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from pytest_otval.checks.cache import FindingsCache
from pytest_otval.checks.registry import all_checks
from pytest_otval.core import Conclusion, StageResult
from pytest_otval.images.model import Image, ImageConfig, ImageRequest
from pytest_otval.profile import Profile
from pytest_otval.runtimes.store import Runtimes
from pytest_otval.sandbox.admission import Admission
from pytest_otval.sandbox.base import Command, CommandResult, ContainerSpec, Ended, NoStartError
from pytest_otval.sandbox.budget import Budget
from pytest_otval.sandbox.leftovers import OwnScratch
from pytest_otval.sandbox.namespace import FilesOfContainers
from pytest_otval.settings import RunSettings, Settings, VerdictSettings
from pytest_otval.stages.machine import own_extensions
from pytest_otval.stages.question import Question
from pytest_otval.stages.registry import ask as ask_stage
from pytest_otval.stages.spec import STAGES
from pytest_otval.task.load import Task, load_task
from pytest_otval.trial.layer import Bench

FROM = "FROM debian:bookworm-slim\n"

TOML = """
[environment]
network_mode = "no-network"
[agent]
timeout_sec = 30.0
[verifier]
timeout_sec = 30.0
"""


@dataclass(frozen=True)
class Answer:
    """How a command of a fake container ends."""

    ended: Ended = "exit"
    status: int | None = 0
    output: bytes = b""
    left_alive: int = 0


Script = Callable[["FakeContainer", Command], Answer | None]
"""Decides how a command ends, and may write into the container's binds; None is success without a word."""


@dataclass
class FakeContainer:
    """A container in which nothing runs."""

    spec: ContainerSpec
    script: Script
    commands: list[Command] = field(default_factory=list)
    start_seconds: float = 0.0
    dead: bool = False

    def run(self, command: Command) -> CommandResult:
        assert not self.dead, "the container is dead"
        self.commands.append(command)
        answer = self.script(self, command) or Answer()
        command.log.parent.mkdir(parents=True, exist_ok=True)
        command.log.write_bytes(answer.output)
        self.dead = answer.ended != "exit"
        return CommandResult(answer.ended, answer.status, 0.0, command.log, answer.left_alive)

    def bound(self, target: str) -> Path:
        """Return the host's folder that the container sees at ``target``."""
        return next(bind.source for bind in self.spec.binds if bind.target == target)


@dataclass
class FakeSandbox:
    """See ``pytest_otval.sandbox.base.Sandbox``: records containers and commands, runs no process."""

    script: Script = lambda container, command: None
    maps_uids: bool = True
    flavour: str = "fakeroot-subuid"
    refuses: Callable[[int], str] = lambda number: ""
    """Why the container of this number (the first is 0) does not start; "" where it does."""
    containers: list[FakeContainer] = field(default_factory=list)
    removed: list[Path] = field(default_factory=list)
    has_artifacts: bool = False
    layers: list[tuple[str, str]] = field(default_factory=list)
    """What was done to writable layers."""

    @contextmanager
    def open(self, spec: ContainerSpec) -> Iterator[FakeContainer]:
        why = self.refuses(len(self.containers))
        container = FakeContainer(spec, self.script)
        self.containers.append(container)
        if why:
            raise NoStartError(why)
        yield container
        container.dead = True

    def shell_line(self, spec: ContainerSpec) -> str:
        return f"shell over {spec.overlay}"

    def make_readable(self, folder: Path) -> None:
        pass

    def size(self, folder: Path) -> int:
        return sum(path.lstat().st_size for path in folder.rglob("*"))

    def touched(self, folder: Path, since: Path, target: Path, most: int) -> None:
        FilesOfContainers(maps_uids=False).touched(folder, since, target, most)

    def remove(self, folder: Path) -> None:
        self.removed.append(folder)
        shutil.rmtree(folder, ignore_errors=True)

    def save_layer(self, overlay: Path, target: Path) -> None:
        self.layers.append(("saved", target.name))

    def layer_holds(self, overlay: Path, path: str) -> bool:
        return self.has_artifacts

    def restore_layer(self, overlay: Path, restores: Callable[[str], bool], saved: Path | None) -> None:
        self.layers += [("restored", name) for name in ("app", "srv", "tests", "usr") if restores(name)]

    @property
    def commands(self) -> list[Command]:
        return [command for container in self.containers for command in container.commands]


@dataclass
class FakeImages:
    """Gives every request the same image, or raises what ``fault`` says."""

    config: ImageConfig = field(default_factory=ImageConfig)
    fault: Callable[[ImageRequest], Conclusion | None] = lambda request: None
    files: tuple[Path, ...] = (Path("/nowhere.sqfs"),)
    requests: list[ImageRequest] = field(default_factory=list)

    def ensure(self, request: ImageRequest, log: Path | None = None) -> Image:
        self.requests.append(request)
        conclusion = self.fault(request)
        if conclusion is not None:
            raise conclusion
        return Image("0" * 64, self.files, "1" * 64, "bootstrap:fake@0", self.config)

    def base_files(self, request: ImageRequest) -> tuple[Path, ...]:
        return ()

    def plan(self, request: ImageRequest) -> SimpleNamespace:
        return SimpleNamespace(key="0" * 64)


def ask(stage: str, machine: object, question: Question) -> tuple[StageResult, int]:
    """Ask one of our own stages."""
    (found,) = [one for one in STAGES if one.name == stage]
    return ask_stage(found, machine, question)


class FakeMachine:
    """What stages ask of ``pytest_otval.stages.machine.Machine``."""

    def __init__(self, folder: Path, sandbox: FakeSandbox, images: FakeImages, verdict: VerdictSettings) -> None:
        self.folder = folder
        self.sandbox = sandbox
        self.images = images
        self.checks = all_checks()
        self.leaks = FindingsCache(folder / "leaks", "v")
        self.agent = own_extensions().agents.__getitem__
        self.settings = Settings(RunSettings(folder / "out"), verdict)
        self.profile = Profile(name="fake")
        self.allow_public = verdict.network != "none"
        (folder / "scratch").mkdir(exist_ok=True)
        self.scratch = OwnScratch(folder / "scratch")
        self.admission = Admission(folder / "scratch", Budget((0, 1), 4096))

    def bench(self) -> Bench:
        runtimes = Runtimes(self.folder / "runtimes")
        return Bench(self.sandbox, self.scratch, self.images.ensure, self.allow_public, self.admission, runtimes)


def writes_reward(text: str | None, name: str = "reward.txt") -> Script:
    """A script of a fake sandbox: test.sh leaves a reward, everything else succeeds."""

    def script(container: FakeContainer, command: Command) -> Answer | None:
        if text is not None and command.argv[-1] == "/tests/test.sh":
            (container.bound("/logs/verifier") / name).write_text(text)
        return None

    return script


def make_task(
    folder: Path,
    solve: str | None = "true",
    test: str | None = "true",
    toml: str = TOML,
    files: Mapping[str, str] | None = None,
) -> Task:
    """Write a task below ``folder`` and load it; ``solve`` and ``test`` are the lines of bash of the two scripts."""
    path = folder / "set" / "tasks" / "task"
    scripts = {"solution/solve.sh": solve, "tests/test.sh": test}
    texts = {name: f"#!/bin/bash\n{text}\n" for name, text in scripts.items() if text is not None}
    all_files = {"environment/Dockerfile": FROM, "instruction.md": "x\n", **texts, **(files or {})}
    for name, text in all_files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    (path / "task.toml").write_text(toml)
    return load_task(path, "set")
