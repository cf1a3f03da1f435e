"""Installing a runtime in a container, once, and saving it in the cache: by a recipe or by a task's own script."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from pytest_otval.core import Conclusion, Network
from pytest_otval.images.bases import file_digest
from pytest_otval.images.failures import container_failure, last_lines, nearly_full
from pytest_otval.images.model import Image
from pytest_otval.images.pack import PackError, packing
from pytest_otval.images.running import tail
from pytest_otval.images.site import SiteFiles
from pytest_otval.images.steps import BUILD_FOLDER
from pytest_otval.profile import BuildSection
from pytest_otval.runtimes.contents import Contents
from pytest_otval.runtimes.mount import DONE, TOLD, tell
from pytest_otval.runtimes.record import Runtime, name_of
from pytest_otval.runtimes.store import Runtimes
from pytest_otval.sandbox.admission import Admission, Need
from pytest_otval.sandbox.base import (
    DEFAULT_PATH,
    TOOLBOX,
    Bind,
    Command,
    Container,
    ContainerSpec,
    Limits,
    NoStartError,
    Sandbox,
)
from pytest_otval.sandbox.limits import pinned
from pytest_otval.task.copies import copy_in
from pytest_otval.task.packed.unpack import DamagedError

_BUSYBOX = f"{TOOLBOX}/busybox"
_PACK_SECONDS = 1800
_PYTHONS = ("bin/python3", "usr/bin/python3")


@dataclass(frozen=True, slots=True)
class Installation:
    """What installs a runtime."""

    id: str
    path: str
    """Its folder, in the container that it is installed in and in all that use it."""
    image: Image
    source: Path
    """A folder of the host that the container sees as ``seen_at``, as a copy."""
    seen_at: str
    script: str
    """Below ``seen_at``."""
    seconds: float
    env: Mapping[str, str]
    workdir: str = "/"
    common: Path | None = None
    """A second folder, whose files the container sees at the same place."""
    by_helper: bool = False
    """Whether the script tells by the helper when it is done; else it is done when it ends with 0."""
    python: str = ""
    """Below ``path``; empty: looked for in the usual places."""
    limits: Limits = field(default_factory=Limits)

    @property
    def where(self) -> str:
        """What a user calls the script."""
        return f"{self.source.name}/{self.script}"


class Installer:
    """Installs runtimes and puts them into a cache."""

    def __init__(
        self,
        runtimes: Runtimes,
        sandbox: Sandbox,
        site: BuildSection,
        scratch: Path,
        admission: Admission,
        network: Network = "public",
    ) -> None:
        """``scratch`` is node-local; ``site`` is what builds see of the machine's configuration."""
        self._runtimes = runtimes
        self._sandbox = sandbox
        self._site = site
        self._scratch = scratch
        self._admission = admission
        self._network: Network = network

    def ensure(self, installation: Installation, log: Path | None = None, anew: bool = False) -> Runtime:
        """Return the newest right runtime of an id from the cache, or install and save it now, once for all processes.

        ``anew`` installs it whatever is there. What the script says is appended to ``log``. Raises Conclusion:
        ``setup-failed``, ``setup-timeout``, ``memory-limit``, ``storage-limit``, ``network-unreachable``,
        ``host-disk-full``, ``no-start``, ``killed``, ``runtime-missing`` where there is no network.
        """
        with self._runtimes.making(installation.id):
            found = None if anew else self._runtimes.newest(installation.id)
            return found or self._install(installation, log)

    def _install(self, installation: Installation, log: Path | None) -> Runtime:
        if self._network == "none":
            words = f"{installation.id} is not in {self._runtimes.cache}, and there is no network to install it"
            raise Conclusion("runtime-missing", words)
        work = Path(tempfile.mkdtemp(dir=self._scratch, prefix="runtime-"))
        half = self._runtimes.half(installation.id)
        try:
            with self._admission.grant(Need.of([installation.limits])) as granted, pinned(granted.cores):
                self._run(installation, work)
                self._pack(installation, work, half)
                return self._publish(installation, half)
        except NoStartError as error:
            raise Conclusion("no-start", f"the container of an installation did not start: {error}") from None
        except (PackError, BrokenPipeError, DamagedError) as error:
            if nearly_full(half.parent):
                raise Conclusion("host-disk-full", f"{half.parent} is full: free some space") from None
            raise Conclusion("internal", f"{installation.id} cannot be packed: {error}") from None
        finally:
            half.unlink(missing_ok=True)
            if log is not None and (work / "install.log").exists():
                log.parent.mkdir(parents=True, exist_ok=True)
                with (work / "install.log").open("rb") as source, log.open("ab") as target:
                    shutil.copyfileobj(source, target)
            self._sandbox.remove(work)

    def _run(self, installation: Installation, work: Path) -> None:
        """Run the script, which installs into the container's writable layer."""
        folder, copy, told = work / "folder", work / "source", work / "told"
        folder.mkdir()
        folder.chmod(0o755)
        for source in filter(None, (installation.common, installation.source)):
            copy_in(source, copy)
        name = name_of(installation.id)
        binds = [
            Bind(folder, BUILD_FOLDER),
            Bind(copy, installation.seen_at),
            Bind(tell(told, name, installation.path, "save"), TOLD),
        ]
        apt = folder / "apt.conf"
        # apt cannot become its user _apt where only root is mapped.
        apt.write_text('APT::Sandbox::User "root";\n')
        site = SiteFiles(self._site.files(), folder)
        env = {**self._site.environment(), "APT_CONFIG": f"{BUILD_FOLDER}/apt.conf", **installation.env}
        env |= {"OT_RUNTIME": installation.path, "PATH": f"{TOOLBOX}/lib:{installation.env.get('PATH', DEFAULT_PATH)}"}
        files, overlay = installation.image.files, work / "overlay"
        spec = ContainerSpec(files, overlay, binds, self._network, installation.limits, for_build=True)
        log = work / "install.log"
        script = f"{installation.seen_at}/{installation.script}"
        argv = [f"{TOOLBOX}/sh", "-c", '$0 mkdir -p "$1" && exec "$2"', _BUSYBOX, installation.path, script]
        with self._sandbox.open(spec) as container:
            _ours(container, site.mount_argv(), work)
            command = Command(argv, log, env, None, installation.workdir, installation.seconds)
            result = container.run(command)
            if result.ended == "exit":
                _ours(container, site.unmount_argv(), work)
        done = not installation.by_helper or (told / DONE).is_file()
        if not (result.ok and done):
            self._fail(installation, result.ended, result.status, log)

    def _fail(self, installation: Installation, ended: str, status: int | None, log: Path) -> None:
        text = tail(log)
        where, last = installation.where, last_lines(text)
        if ended == "timeout":
            raise Conclusion("setup-timeout", f"{where} did not install {installation.id} within its limit", last)
        failure = container_failure(ended, text, where, self._scratch)
        if failure is not None:
            raise failure
        if status == 0:
            words = f"{where} ended without ot_runtime_save: call it when the runtime is complete"
            raise Conclusion("setup-failed", words, last)
        raise Conclusion("setup-failed", f"{where} ended with status {status}", last)

    def _pack(self, installation: Installation, work: Path, half: Path) -> None:
        """Stream the folder out of a container of its own: daemons that the script left are dead and write no more."""
        log = work / "pack.log"
        spec = ContainerSpec(installation.image.files, work / "overlay")
        above = [str(path)[1:] for path in reversed(PurePosixPath(installation.path).parents)][1:]
        argv = [_BUSYBOX, "tar", "-c", "--numeric-owner", "-C", "/", "--", installation.path[1:]]
        with self._sandbox.open(spec) as container, packing(half, all_root=True, folders=above) as stream:
            result = container.run(Command(argv, log, {"PATH": TOOLBOX}, seconds=_PACK_SECONDS, stdout=stream))
            words = [line for line in tail(log).splitlines() if "unknown file type" not in line]
            if result.ended != "exit" or (not result.ok and words):
                raise PackError(words[-1] if words else f"tar: {result.ended} {result.status}")

    def _publish(self, installation: Installation, half: Path) -> Runtime:
        try:
            contents = Contents(half, installation.path)
        except LookupError:
            raise PackError(f"{installation.path} is no folder") from None
        if not contents.files:
            words = f"{installation.where} left {installation.path} empty: it has to install into $OT_RUNTIME"
            raise Conclusion("setup-failed", words)
        there = contents.files.keys() | contents.links
        # Below a folder that is a link it is not looked for.
        places = {installation.python, *map(str, PurePosixPath(installation.python).parents)}
        if installation.python and not places & there:
            words = f"{installation.where} did not install {installation.path}/{installation.python}"
            raise Conclusion("setup-failed", f"{words}: let it do so, or correct `python` in runtime.toml")
        python = installation.python or next((name for name in _PYTHONS if name in there), "")
        runtime = Runtime(
            file_digest(half),
            installation.id,
            installation.path,
            half.stat().st_size,
            installation.image.base,
            installation.image.key,
            python,
            datetime.now(UTC).isoformat(timespec="seconds"),
            contents.packages(),
            contents.files,
        )
        self._runtimes.publish(half, runtime)
        return runtime


def _ours(container: Container, argv: Sequence[str] | None, work: Path) -> None:
    if argv is not None:
        container.run(Command(argv, work / "ours.log", {"PATH": TOOLBOX}))
