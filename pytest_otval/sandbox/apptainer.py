"""The sandbox over Apptainer: one ``apptainer exec`` a container."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sh

from pytest_otval.core import Conclusion, Network
from pytest_otval.sandbox.base import TOOLBOX, UPPER, Bind, ContainerSpec
from pytest_otval.sandbox.container import RunningContainer
from pytest_otval.sandbox.first_process import OWN_LAYERS, first_argv
from pytest_otval.sandbox.gpus import runtime_flags
from pytest_otval.sandbox.launch import Child, Launcher
from pytest_otval.sandbox.leftovers import OwnScratch
from pytest_otval.sandbox.limits import cores
from pytest_otval.sandbox.namespace import FilesOfContainers
from pytest_otval.sandbox.network import RESOLVER, public_network
from pytest_otval.sandbox.slots import Slots
from pytest_otval.sandbox.traffic import Traffic, listening


@dataclass(frozen=True, slots=True)
class Flavour:
    """A way to be root in a container."""

    name: str
    flags: tuple[str, ...]
    """Flags of a trial."""
    build_flags: tuple[str, ...]
    """Flags of a build."""
    maps_uids: bool


FLAVOURS = {
    flavour.name: flavour
    for flavour in (
        Flavour("fakeroot-subuid", ("--fakeroot",), ("--fakeroot",), maps_uids=True),
        # The fakeroot program starts through the container's own /bin/sh and library path, so trials do without it;
        # builds, which trust their root, need it: package managers set owners.
        Flavour("fakeroot-preload", ("--fakeroot", "--ignore-fakeroot-command"), ("--fakeroot",), maps_uids=False),
        Flavour("userns", ("--userns",), ("--userns",), maps_uids=False),
        Flavour("setuid", (), (), maps_uids=True),
    )
}
"""Apptainer's ways to be root in a container: a subuid range is mapped; only one's own uid is, with and without the
``fakeroot`` program for builds; real root of a host whose root has every capability."""

_FAST = "-comp zstd -Xcompression-level 1"
"""How the file of a pulled image is packed; it is packed again once it is a base."""

_ISOLATION = (
    "--containall",
    "--cleanenv",
    "--no-eval",
    "--no-mount",
    "home,tmp,bind-paths,cwd,hostfs",
    "--uts",
    "--hostname",
    "task",
    "--pwd",
    "/",
)
"""/tmp and /var/tmp are the image's own, in the writable layer: what an agent leaves there is seen by the verifier."""


class ApptainerSandbox:
    """See ``base.Sandbox``."""

    def __init__(
        self,
        flavour: Flavour,
        toolbox: Path,
        scratch: OwnScratch,
        public: str = "slirp4netns",
        starts: Slots | None = None,
        launch: Launcher = Child,
    ) -> None:
        """``public`` is the profile's way to the public network.

        ``starts`` says how many containers start at a time, ``launch`` starts the runtime of trials.
        """
        program = shutil.which("apptainer") or shutil.which("singularity")
        if program is None:
            raise Conclusion(
                "missing-tool", "apptainer is not on PATH: run ./setup.sh as root, or ask an administrator for it"
            )
        self._program = program
        self._flavour = flavour
        self._toolbox = toolbox
        self._scratch = scratch
        self._public = public
        self._starts = starts or Slots(scratch.folder, "start", None)
        self._launch = launch
        self._files = files = FilesOfContainers(flavour.maps_uids)
        self.make_readable, self.size, self.remove = files.make_readable, files.size, files.remove
        self.touched = files.touched

    @property
    def flavour(self) -> str:
        """See ``base.Sandbox``."""
        return self._flavour.name

    @property
    def maps_uids(self) -> bool:
        """See ``base.Sandbox``."""
        return self._flavour.maps_uids

    @contextmanager
    def open(self, spec: ContainerSpec) -> Iterator[RunningContainer]:
        """See ``base.Sandbox``."""
        with ExitStack() as stack:
            overlay = spec.overlay
            if overlay is None:
                overlay = self._scratch.new("overlay")
                stack.callback(self.remove, overlay)
            overlay.mkdir(parents=True, exist_ok=True)
            written = [overlay]
            layered = self._layered(spec)
            argv = self._argv(spec, overlay)
            if layered:
                own = self._scratch.new("own-layers")
                stack.callback(self.remove, own)
                for number in range(len(layered)):
                    for name in ("upper", "work"):
                        (own / str(number) / name).mkdir(parents=True)
                written.append(own)
                argv += _bind_words(Bind(own, OWN_LAYERS))
            with self._starts.one():
                container = RunningContainer(
                    [*argv, str(spec.image[0]), *first_argv(spec.for_build, [bind.target for bind in layered])],
                    _host_environment(),
                    spec.limits,
                    cores(spec.limits.cpus, spec.cores),
                    on_start=self._scratch.record,
                    storage_bytes=lambda: sum(map(self.size, written)),
                    gpus=spec.gpus,
                    launch=Child if spec.for_build else self._launch,
                )
            stack.callback(container.close)
            if spec.network == "public" and self._public == "slirp4netns":
                stack.enter_context(public_network(container.init_pid))
            if spec.traffic is not None:
                self._tell(stack, spec.traffic, spec.network, container.init_pid)
            yield container

    def _tell(self, stack: ExitStack, traffic: Traffic, network: Network, init_pid: int) -> None:
        """Let somebody hear what a container asks of the network, or why that cannot be heard."""
        if network == "none":
            traffic.unheard = "it had no network, where an attempt ends before there is a packet"
        elif self._public != "slirp4netns":
            traffic.unheard = "it had the network of the host, where its packets cannot be told from others"
        else:
            stack.enter_context(listening(traffic, init_pid))

    def shell_line(self, spec: ContainerSpec) -> str:
        """See ``base.Sandbox``."""
        argv = ["apptainer", *self._argv(spec, spec.overlay)[3:], str(spec.image[0]), f"{TOOLBOX}/sh"]
        return shlex.join(argv)

    def save_layer(self, overlay: Path, target: Path) -> None:
        """See ``base.Sandbox``."""
        self._files.copy(overlay / UPPER, target)

    def layer_holds(self, overlay: Path, path: str) -> bool:
        """See ``base.Sandbox``."""
        return self._files.holds(overlay / UPPER, path.strip("/").split("/"))

    def restore_layer(self, overlay: Path, restores: Callable[[str], bool], saved: Path | None) -> None:
        """See ``base.Sandbox``."""
        upper = overlay / UPPER
        for name in filter(restores, self._files.names(upper)):
            self.remove(upper / name)
        left = [name for name in self._files.names(upper) if restores(name)]
        if left:
            raise OSError(f"{upper}: {left[0]!r} cannot be removed")
        if saved is not None:
            for name in filter(restores, self._files.names(saved)):
                self._files.copy(saved / name, upper / name)

    @property
    def loses_owners(self) -> bool:
        """Whether ``convert`` gives all files to root, though this flavour could map their owners.

        Apptainer does so for every user but the host's own root, subordinate uids or not.
        """
        return self._flavour.maps_uids and os.getuid() != 0

    def convert(self, layout: Path, target: Path) -> None:
        """Write the image of an OCI layout to a SIF file.

        What it needs besides is below the folder of ``layout``. Raises Conclusion ``base-unavailable`` or
        ``host-disk-full``.
        """
        self._build_from(layout, str(target), "--mksquashfs-args", _FAST)

    def unpack(self, layout: Path, target: Path) -> None:
        """Unpack the image of an OCI layout to the new folder ``target``; see ``convert``."""
        self._build_from(layout, str(target), "--sandbox")

    def _build_from(self, layout: Path, target: str, *how: str) -> None:
        argv = ["--nocolor", "--silent", "build", *self._flavour.build_flags, "--disable-cache", "--force"]
        argv += ["--tmpdir", str(layout.parent), *how, target, f"oci:{layout}"]
        options: dict[str, Any] = {"_tty_out": False, "_new_session": True, "_env": _host_environment()}
        try:
            sh.Command(self._program)(*argv, **options)
        except sh.ErrorReturnCode as error:
            words = error.stderr.decode(errors="replace").strip().splitlines()
            last = words[-1].removeprefix("FATAL:").strip() if words else "no reason given"
            if any("no space left on device" in line for line in words):
                raise Conclusion("host-disk-full", f"{layout.parent}: {last}") from None
            raise Conclusion("base-unavailable", f"the image cannot be unpacked: {last}") from None

    def _argv(self, spec: ContainerSpec, overlay: Path | None) -> list[str]:
        flags = self._flavour.build_flags if spec.for_build else self._flavour.flags
        argv = [self._program, "--nocolor", "--silent", "exec", *flags, *_ISOLATION]
        for layer in spec.image[1:]:
            argv += ["--overlay", f"{layer}:ro"]
        argv += ["--writable-tmpfs"] if overlay is None else ["--overlay", str(overlay)]
        if spec.network == "none" or self._public == "slirp4netns":
            argv += ["--net", "--network", "none"]
        if spec.network == "public" and self._public == "slirp4netns":
            argv += ["--dns", RESOLVER]
        argv += runtime_flags(spec.gpus)
        for bind in (Bind(self._toolbox, TOOLBOX, "squashfs"), *spec.binds):
            argv += _bind_words(bind)
        return argv

    def _layered(self, spec: ContainerSpec) -> list[Bind]:
        """Return the binds that get a layer of their own: without power over mounts there is none."""
        return [bind for bind in spec.binds if bind.own_layer and self._flavour.name != "userns"]


def _bind_words(bind: Bind) -> list[str]:
    # A folder bound read-only can be remounted writable by the container's root; an image cannot.
    suffix = f":image-src={bind.inside}" if bind.kind == "squashfs" else ""
    return ["--bind", f"{bind.source}:{bind.target}{suffix}"]


_OF_THE_RUNTIME = frozenset(
    (
        *("APPTAINER_CACHEDIR", "APPTAINER_TMPDIR", "APPTAINER_CONFIGDIR", "DBUS_SESSION_BUS_ADDRESS", "GOMAXPROCS"),
        *("HOME", "LANG", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "TMPDIR", "USER", "XDG_RUNTIME_DIR"),
    )
)


def _host_environment() -> dict[str, str]:
    """What the runtime itself is given: APPTAINER_BIND would change every container, and keys are none of it."""
    return {key: value for key, value in os.environ.items() if key in _OF_THE_RUNTIME or key.startswith("LC_")}
