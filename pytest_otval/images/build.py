"""Running the steps of a plan in one container, and packing what they made."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pytest_otval.core import Conclusion, Network
from pytest_otval.images.copying import CopyError, Source, copy_archive, write_archive
from pytest_otval.images.failures import disk_full, last_lines, nearly_full, network_failure
from pytest_otval.images.owner import numeric_owner
from pytest_otval.images.pack import PackError, packing
from pytest_otval.images.site import SiteFiles
from pytest_otval.images.steps import BUILD_FOLDER, BuildPlan, CopyStep, RunStep, Step, WorkdirStep
from pytest_otval.profile import BuildSection
from pytest_otval.sandbox.base import (
    DEFAULT_PATH,
    TOOLBOX,
    Bind,
    Command,
    CommandResult,
    Container,
    ContainerSpec,
    Limits,
    NoStartError,
    Sandbox,
)

_BUSYBOX = f"{TOOLBOX}/busybox"
_TAIL_BYTES = 256 << 10
_PACK_SECONDS = 1800
_UNPACK = f'B={_BUSYBOX}; [ -d "$1" ] || {{ $B mkdir -p "$1" && $B chown "$2" "$1"; }} && shift 2 && exec $B tar "$@"'
_TAR_FLAGS = {"": "", "gzip": "z", "bzip2": "j", "xz": "J"}
_PACK = f"""
B={_BUSYBOX}
cd / && set --
for entry in * .[!.]* ..?* etc/* etc/.[!.]*; do
  case $entry in
    .otval|.otval-build|.singularity.d|proc|sys|dev|etc/resolv.conf|etc/hostname) continue ;;
    etc) [ -L etc ] || continue ;;
    etc/*) [ ! -L etc ] || continue ;;
  esac
  if [ -L "$entry" ]; then
    case $($B readlink "$entry") in .singularity.d/*|/.singularity.d/*) continue ;; esac
  elif [ ! -e "$entry" ]; then
    continue
  fi
  set -- "$@" "$entry"
done
exec $B tar -c --numeric-owner "$@"
"""
"""What is the runtime's own is left out: its mounts, which it makes again for each container (resolv.conf and hostname
tell of the host), and in an image of its own format its links."""


class Builder:
    """Builds images, each in a container and a scratch folder of its own."""

    def __init__(self, sandbox: Sandbox, site: BuildSection, scratch: Path, network: Network = "public") -> None:
        """``scratch`` is node-local; ``network`` is what RUN gets."""
        self._sandbox = sandbox
        self._site = site
        self._scratch = scratch
        self._network = network

    def build(
        self, plan: BuildPlan, base: Path, target: Path, seconds: float, limits: Limits, log: Path | None = None
    ) -> float:
        """Run a plan's steps over the image ``base``, pack the result as ``target``, return the steps' seconds.

        ``seconds`` is the limit of all steps together; what they say is appended to ``log``. Raises Conclusion:
        ``build-failed``, ``build-timeout``, ``memory-limit``, ``storage-limit``, ``network-unreachable``,
        ``host-disk-full``, ``no-start``, ``killed``.
        """
        work = Path(tempfile.mkdtemp(dir=self._scratch, prefix="build-"))
        try:
            overlay = work / "overlay"
            began = time.monotonic()
            if plan.steps:
                self._run_steps(plan, base, work, overlay, seconds, limits)
            spent = time.monotonic() - began
            self._pack(plan, base, work, overlay, target)
            return spent
        except NoStartError as error:
            if nearly_full(self._scratch):
                raise self._full() from None
            raise Conclusion("no-start", f"the container of a build did not start: {error}") from None
        finally:
            if log is not None:
                _keep_logs(plan, work, log)
            self._sandbox.remove(work)

    def _run_steps(
        self, plan: BuildPlan, base: Path, work: Path, overlay: Path, seconds: float, limits: Limits
    ) -> None:
        folder = work / "folder"
        folder.mkdir()
        # For every user of the container, whatever the umask here.
        folder.chmod(0o755)
        apt = folder / "apt.conf"
        # apt cannot become its user _apt where only root is mapped.
        apt.write_text('APT::Sandbox::User "root";\n')
        apt.chmod(0o644)
        site = SiteFiles(self._site.files(), folder)
        spec = ContainerSpec(
            base,
            overlay=overlay,
            binds=[Bind(folder, BUILD_FOLDER)],
            network=self._network,
            limits=limits,
            for_build=True,
        )
        with self._sandbox.open(spec) as container:
            run = _Run(plan, container, work, folder, time.monotonic() + seconds, self._sandbox.maps_uids)
            site_env = {**self._site.environment(), "APT_CONFIG": f"{BUILD_FOLDER}/apt.conf"}
            step = plan.steps[0]
            try:
                run.ours(site.mount_argv())
                for number, step in enumerate(plan.steps):
                    result = run.step(step, number, site_env)
                    if not result.ok:
                        raise self._failure(plan, step, result, seconds)
                run.ours(site.unmount_argv())
            except _ContainerDead as dead:
                raise self._failure(plan, step, dead.result, seconds) from None

    def _pack(self, plan: BuildPlan, base: Path, work: Path, overlay: Path, target: Path) -> None:
        """Pack from a container of its own: daemons that the steps left are dead and write no more."""
        log = work / "pack.log"
        try:
            with (
                self._sandbox.open(ContainerSpec(base, overlay=overlay)) as container,
                packing(target, all_root=not self._sandbox.maps_uids) as stream,
            ):
                argv = [_BUSYBOX, "sh", "-c", _PACK]
                result = container.run(Command(argv, log=log, stdout=stream, seconds=_PACK_SECONDS))
                if result.ended == "timeout":
                    raise Conclusion(
                        "build-timeout",
                        f"{plan.file or plan.base.name}: not packed within {_PACK_SECONDS} s: a sparse file?",
                    )
                # A socket is not packed, as in Docker's layers; busybox counts it as an error.
                words = [line for line in _tail(log).splitlines() if "unknown file type" not in line]
                if result.ended != "exit" or (not result.ok and words):
                    raise PackError(words[-1] if words else f"tar: {result.ended} {result.status}")
        except (PackError, BrokenPipeError) as error:
            if nearly_full(target.parent):
                raise Conclusion("host-disk-full", f"{target.parent} is full: free some space") from None
            raise Conclusion("internal", f"the image cannot be packed: {error}", _tail(log)) from None

    def _failure(self, plan: BuildPlan, step: Step, result: CommandResult, seconds: float) -> Conclusion:
        text = _tail(result.log)
        where = f"{plan.file}:{step.line}"
        log = last_lines(text)
        kind = step.text.split(maxsplit=1)[0].upper()
        if result.ended == "timeout":
            return Conclusion("build-timeout", f"{where}: {kind}: not built within {seconds:g} s", log)
        if disk_full(text, self._scratch) or (result.ended == "storage" and nearly_full(self._scratch)):
            return self._full()
        if result.ended in ("memory", "storage"):
            return Conclusion(f"{result.ended}-limit", f"{where}: {kind}: over the {result.ended} limit", log)
        if result.ended == "killed":
            return Conclusion("killed", f"{where}: {kind}: the build's container was killed from outside", log)
        silent = network_failure(text)
        if silent:
            return Conclusion("network-unreachable", f"{where}: {kind}: {silent}", log)
        last = last_lines(text, 1)
        status = f"{kind} ended with status {result.status}"
        return Conclusion("build-failed", f"{where}: {status}{': ' + last if last else ''}", log)

    def _full(self) -> Conclusion:
        return Conclusion("host-disk-full", f"the scratch {self._scratch} is full: free some space or set OT_SCRATCH")


class _ContainerDead(Exception):
    """A command ended other than by itself, and with it the container."""

    def __init__(self, result: CommandResult) -> None:
        super().__init__(result.ended)
        self.result = result


class _Run:
    """The steps of one build in its container."""

    def __init__(
        self, plan: BuildPlan, container: Container, work: Path, folder: Path, deadline: float, maps_uids: bool
    ) -> None:
        self._plan = plan
        self._container = container
        self._work = work
        self._folder = folder
        self._deadline = deadline
        self._maps_uids = maps_uids

    def ours(self, argv: Sequence[str] | None) -> None:
        """Run a program of ours, if any; what it misses, the steps will tell. It may call a program of the image."""
        if argv is not None:
            self._run(Command(argv, log=self._work / "ours.log", env={"PATH": DEFAULT_PATH}))

    def step(self, step: Step, number: int, site_env: dict[str, str]) -> CommandResult:
        """Run one step. ``site_env`` is for RUN; the Dockerfile's own variables win."""
        log = _step_log(self._work, number)
        if isinstance(step, RunStep):
            if step.script:
                script = self._folder / step.argv[0].rpartition("/")[2]
                script.write_text(step.script, encoding="utf-8", errors="surrogateescape")
                script.chmod(0o755)
            env = {**site_env, **step.env}
            return self._run(Command(step.argv, log, env, step.user, step.workdir))
        if isinstance(step, WorkdirStep):
            return self._run(Command([_BUSYBOX, "test", "-d", "."], log, workdir=step.path))
        return self._copy(step, number, log)

    def _run(self, command: Command) -> CommandResult:
        result = self._container.run(replace(command, seconds=max(0.1, self._deadline - time.monotonic())))
        if result.ended != "exit":
            raise _ContainerDead(result)
        return result

    def _copy(self, step: CopyStep, number: int, log: Path) -> CommandResult:
        where = f"{self._plan.file}:{step.line}"
        try:
            owner = numeric_owner(step.owner, self._text_of)
        except LookupError as error:
            raise Conclusion("build-failed", f"{where}: --chown={step.owner}: {error.args[0]}") from None
        folder, name = step.destination, ""
        if not step.into_folder and not self._run(Command([_BUSYBOX, "test", "-d", folder], log)).ok:
            folder, _, name = step.destination.rpartition("/")
        for index, source in enumerate(step.sources):
            archive = self._folder / f"copy-{number}-{index}.tar"
            try:
                flags = self._write(step, source, name or source.name, archive, owner)
            except CopyError as error:
                raise Conclusion("build-failed", f"{where}: {error}") from None
            words = [f"{owner[0]}:{owner[1]}", *flags, "-f", f"{BUILD_FOLDER}/{archive.name}", "-C", folder or "/"]
            argv = [_BUSYBOX, "sh", "-c", _UNPACK, "sh", folder or "/", *words]
            result = self._run(Command(argv, log))
            archive.unlink()
            if not result.ok:
                return result
        return result

    def _write(self, step: CopyStep, source: Source, name: str, archive: Path, owner: tuple[int, int]) -> list[str]:
        """Write the archive of a source; return the flags that unpack it."""
        assert self._plan.context is not None
        if source.archive is None:
            write_archive(self._plan.context, source, name, archive, owner, step.mode)
            return ["-xp"]
        copy_archive(self._plan.context, source, archive)
        flags = "-xp" + _TAR_FLAGS[source.archive]
        return [flags if self._maps_uids else flags + "o"]

    def _text_of(self, path: str) -> str:
        log = self._work / "text.log"
        return _tail(log) if self._run(Command([_BUSYBOX, "cat", path], log)).ok else ""


def _step_log(work: Path, number: int) -> Path:
    return work / f"step-{number}.log"


def _keep_logs(plan: BuildPlan, work: Path, log: Path) -> None:
    """Append what the steps said, each below a line that names it. A full disk here changes no answer."""
    with suppress(OSError):
        for number, step in enumerate(plan.steps):
            # The first without a log was not begun.
            with _step_log(work, number).open("rb") as source:
                log.parent.mkdir(parents=True, exist_ok=True)
                with log.open("ab") as target:
                    target.write(f"==> {plan.file}:{step.line}: {step.text}\n".encode(errors="replace"))
                    shutil.copyfileobj(source, target)


def _tail(log: Path) -> str:
    """Return the end of a log of ours."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
