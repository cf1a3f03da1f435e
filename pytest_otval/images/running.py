"""The steps of one build in its container."""

from __future__ import annotations

import os
import shutil
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from pytest_otval.core import Conclusion, Network
from pytest_otval.images.added import TAR_FLAGS, copy_archive
from pytest_otval.images.copying import MAX_BYTES, CopyError, Member, Source, members, opened
from pytest_otval.images.fetching import fetch
from pytest_otval.images.lower import Lower
from pytest_otval.images.model import Files
from pytest_otval.images.modes import changed_mode
from pytest_otval.images.origins import find_in_origin, origin_members
from pytest_otval.images.owner import numeric_owner
from pytest_otval.images.steps import BuildPlan, CopyFromStep, CopyStep, RunStep, Step, WorkdirStep
from pytest_otval.images.unpacking import MAKE, Part, Unpacker
from pytest_otval.sandbox.base import DEFAULT_PATH, TOOLBOX, Command, CommandResult, Container, Sandbox
from pytest_otval.task.context import Context
from pytest_otval.task.packed.unpack import DamagedError

FOLDER = "folder"
"""The part of a build's folder that its container sees as ``BUILD_FOLDER``."""

_BUSYBOX = f"{TOOLBOX}/busybox"
_TAIL_BYTES = 256 << 10
_KEPT_SIGNS = 64 << 10
"""Of what a build said, in an image's record."""


class ContainerDeadError(Exception):
    """A command ended other than by itself, and with it the container."""

    def __init__(self, result: CommandResult) -> None:
        super().__init__(result.ended)
        self.result = result


class StepRunner:
    """The steps of one build in its container."""

    def __init__(
        self,
        plan: BuildPlan,
        sandbox: Sandbox,
        container: Container,
        origins: Mapping[str, Files],
        work: Path,
        deadline: float,
        network: Network,
    ) -> None:
        """``origins`` are the files of the images that COPY --from reads, by key; ``work`` is the build's folder."""
        self._plan = plan
        self._sandbox = sandbox
        self._container = container
        self._origins = origins
        self._work = work
        self._folder = work / FOLDER
        self._deadline = deadline
        self._network = network
        self._unpacker = Unpacker(self._script, self._folder, work, sandbox.maps_uids)

    def ours(self, argv: Sequence[str] | None) -> None:
        """Run a program of ours, if any; what it misses, the steps will tell. It may call a program of the image."""
        if argv is not None:
            self._run(Command(argv, log=self._work / "ours.log", env={"PATH": DEFAULT_PATH}))

    def step(self, step: Step, number: int, site_env: dict[str, str]) -> CommandResult:
        """Run one step. ``site_env`` is for RUN; the Dockerfile's own variables win."""
        log = step_log(self._work, number)
        if isinstance(step, RunStep):
            if step.script:
                script = self._folder / step.argv[0].rpartition("/")[2]
                script.write_text(step.script, encoding="utf-8", errors="surrogateescape")
                script.chmod(0o755)
            env = {**site_env, **step.env}
            return self._run(Command(step.argv, log, env, step.user, step.workdir))
        if isinstance(step, WorkdirStep):
            return self._script(MAKE, [step.path, self._workdir_owner(step), "755"], log)
        return self._copy(step, number, log)

    def _run(self, command: Command) -> CommandResult:
        result = self._container.run(replace(command, seconds=max(0.1, self._deadline - time.monotonic())))
        if result.ended != "exit":
            raise ContainerDeadError(result)
        return result

    def _script(self, script: str, words: Sequence[str], log: Path) -> CommandResult:
        return self._run(Command([_BUSYBOX, "sh", "-c", script, "sh", *words], log))

    def _workdir_owner(self, step: WorkdirStep) -> str:
        """A user that the image does not know is no fault until something runs as it."""
        try:
            uid, gid = numeric_owner(step.user or "", self._text_of)
        except LookupError:
            return "0:0"
        return f"{uid}:{gid}"

    def _copy(self, step: CopyStep | CopyFromStep, number: int, log: Path) -> CommandResult:
        where = f"{self._plan.file}:{step.line}"
        try:
            owner = numeric_owner(step.owner, self._text_of)
        except LookupError as error:
            raise Conclusion("build-failed", f"{where}: --chown={step.owner}: {error.args[0]}") from None
        try:
            if isinstance(step, CopyStep):
                parts = [self._part(step, source, owner, where) for source in step.sources]
                return self._unpacker.unpack(step, number, parts, owner, log)
            return self._copy_from(step, number, owner, log)
        except (CopyError, ValueError) as error:
            raise Conclusion("build-failed", f"{where}: {error}") from None

    def _copy_from(self, step: CopyFromStep, number: int, owner: tuple[int, int], log: Path) -> CommandResult:
        try:
            with Lower(self._origins[step.origin.key]) as lower:
                return self._unpacker.unpack(step, number, list(self._parts_from(step, lower, owner)), owner, log)
        except DamagedError as error:
            raise Conclusion("internal", f"{step.origin.base.name} cannot be read: {error}") from None

    def _part(self, step: CopyStep, source: Source, owner: tuple[int, int], where: str) -> Part:
        assert self._plan.context is not None
        if source.archive is not None:
            return Part("", None, partial(self._copy_archive, self._plan.context, source, step, owner))
        if source.url:
            fetched = self._work / "fetched"
            fetch(source, fetched, where, self._deadline, self._network)
            return Part(source.name, partial(_fetched_member, fetched, owner, step.mode))
        made = partial(members, self._plan.context, source, owner=owner, mode=step.mode)
        return Part(source.name, made)

    def _copy_archive(
        self, context: Context, source: Source, step: CopyStep, owner: tuple[int, int], archive: Path
    ) -> str:
        assert source.entry is not None and source.archive is not None
        with opened(context, source.entry) as file:
            copy_archive(file, source.archive, archive, MAX_BYTES)
        as_root = not self._sandbox.maps_uids or (step.owner and owner == (0, 0))
        return "-xp" + TAR_FLAGS[source.archive] + ("o" if as_root else "")

    def _parts_from(self, step: CopyFromStep, lower: Lower, owner: tuple[int, int]) -> Iterator[Part]:
        for path in step.paths:
            for found in find_in_origin(lower, path):
                made = partial(origin_members, lower, found, owner=owner if step.owner else None, mode=step.mode)
                yield Part(found.name, made)

    def _text_of(self, path: str) -> str:
        log = self._work / "text.log"
        return tail(log) if self._run(Command([_BUSYBOX, "cat", path], log)).ok else ""


def _fetched_member(fetched: Path, owner: tuple[int, int], mode: str, name: str) -> Iterator[Member]:
    header = tarfile.TarInfo(name)
    header.uid, header.gid = owner
    header.mode = changed_mode(mode, 0o600, is_folder=False) if mode else 0o600
    header.mtime = int(fetched.stat().st_mtime)
    yield Member(header, lambda: fetched.open("rb"))


def step_log(work: Path, number: int) -> Path:
    """Return the file for what a step says."""
    return work / f"step-{number}.log"


def said(plan: BuildPlan, work: Path) -> str:
    """Return the end of what all steps said, each below a line that names it."""
    words = ""
    for number, step in enumerate(plan.steps):
        words = (words + _title(plan, step) + tail(step_log(work, number)))[-_KEPT_SIGNS:]
    return words


def keep_logs(plan: BuildPlan, work: Path, log: Path) -> None:
    """Append what the steps said to ``log``. A full disk here changes no answer."""
    with suppress(OSError):
        for number, step in enumerate(plan.steps):
            # The first without a log was not begun.
            with step_log(work, number).open("rb") as source:
                log.parent.mkdir(parents=True, exist_ok=True)
                with log.open("ab") as target:
                    target.write(_title(plan, step).encode(errors="replace"))
                    shutil.copyfileobj(source, target)


def _title(plan: BuildPlan, step: Step) -> str:
    return f"==> {plan.file}:{step.line}: {step.text}\n"


def tail(log: Path) -> str:
    """Return the end of a log of ours; "" where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
