"""What a machine can do for us, found by doing it: containers in one flavour, disks, programs.

A probe answers; it never raises. Nothing but the toolbox runs in the containers, so no image is needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from pytest_otval.core import Conclusion, Network
from pytest_otval.sandbox.base import Command, CommandResult, ContainerSpec, NoStartError, Sandbox
from pytest_otval.sandbox.leftovers import OwnScratch

GIB = 1024**3
_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Probe:
    """One answer about the machine."""

    area: str
    """A flavour's name, ``programs``, ``disk`` or ``machine``."""
    name: str
    ok: bool
    detail: str = ""
    fix: str = ""
    """What to do about a miss, one line."""
    needed: bool = False
    """Whether a flavour cannot run trials without it."""


class FlavourProbes:
    """The questions about one flavour, asked one after the other over one writable layer."""

    def __init__(self, sandbox: Sandbox, image: Path, scratch: OwnScratch) -> None:
        self._sandbox = sandbox
        self._image = image
        self._scratch = scratch
        self._layer = scratch.new("doctor")
        self._log = self._layer.with_name(self._layer.name + ".log")

    def run(self) -> Iterator[Probe]:
        """Yield the answers. Where no container starts, that is the only one."""
        start = self._ask("exec", self._exec, _start_fix(self._sandbox.flavour), needed=True)
        yield start
        if not start.ok:
            shutil.rmtree(self._layer, ignore_errors=True)
        else:
            yield self._ask("writable layer", self._layer_lasts, "install fuse-overlayfs, see fuse above", needed=True)
            yield self._ask("owners", self._owners_last, _owners_fix())
            yield self._ask("other users", self._other_user, _owners_fix())
            yield self._ask("network none", self._no_network, "a kernel with network namespaces", needed=True)
            yield self._ask(
                "network public", self._public_network, "install slirp4netns, or network.public in the profile"
            )
            yield self._ask("kill", self._kill, "end the processes named, and report this", needed=True)
            yield self._ask("clean up", self._clean_up, "install uidmap (newuidmap, newgidmap)", needed=True)
        self._log.unlink(missing_ok=True)

    def _ask(self, name: str, question: Callable[[], tuple[bool, str]], fix: str, needed: bool = False) -> Probe:
        try:
            ok, detail = question()
        except (NoStartError, Conclusion, OSError, psutil.Error) as error:
            ok, detail = False, str(error)
        return Probe(self._sandbox.flavour, name, ok, detail, "" if ok else fix, needed)

    def _in_container(
        self,
        *argv: str,
        user: str | None = None,
        network: Network = "none",
        seconds: float = _SECONDS,
    ) -> tuple[CommandResult, str, float]:
        """Run a busybox applet; return its result, its output and the seconds that the container took to start."""
        command = Command(
            ["/.otval/busybox", *argv], log=self._log, env={"PATH": "/.otval"}, user=user, seconds=seconds
        )
        spec = ContainerSpec((self._image,), overlay=self._layer, network=network)
        with self._sandbox.open(spec) as container:
            result = container.run(command)
            return result, self._log.read_text(errors="replace").strip(), container.start_seconds

    def _exec(self) -> tuple[bool, str]:
        _, uid, seconds = self._in_container("id", "-u")
        return uid == "0", f"uid {uid} in the container, started in {seconds:.2f} s"

    def _layer_lasts(self) -> tuple[bool, str]:
        self._in_container("sh", "-c", "echo written >/probe")
        _, text, _ = self._in_container("cat", "/probe")
        return text == "written", "the next container reads what one wrote" if text == "written" else text

    def _owners_last(self) -> tuple[bool, str]:
        result, text, _ = self._in_container("chown", "1:1", "/probe")
        if not result.ok:
            return False, text
        _, owner, _ = self._in_container("stat", "-c", "%u:%g", "/probe")
        return owner == "1:1", "last from one container to the next" if owner == "1:1" else f"1:1 became {owner}"

    def _other_user(self) -> tuple[bool, str]:
        self._in_container("sh", "-c", "echo probe:x:1:1::/:/bin/sh >/etc/passwd; echo probe:x:1: >/etc/group")
        result, text, _ = self._in_container("id", "-u", user="probe")
        return result.ok and text == "1", f"uid {text}" if result.ok else text.splitlines()[-1]

    def _no_network(self) -> tuple[bool, str]:
        devices = self._devices("none")
        return devices == ["lo"], ", ".join(devices)

    def _public_network(self) -> tuple[bool, str]:
        devices = self._devices("public")
        return len(devices) > 1, ", ".join(devices)

    def _devices(self, network: Network) -> list[str]:
        # slirp4netns may take a moment to bring its device up.
        script = "for i in 1 2 3 4 5; do cat /proc/net/dev; [ $(wc -l </proc/net/dev) -gt 3 ] && break; sleep 0.2; done"
        _, text, _ = self._in_container(
            "sh", "-c", script if network == "public" else "cat /proc/net/dev", network=network
        )
        return sorted({line.partition(":")[0].strip() for line in text.splitlines() if ":" in line} - {"sit0", "tunl0"})

    def _kill(self) -> tuple[bool, str]:
        result, _, _ = self._in_container("sh", "-c", "trap '' TERM; sleep 1000 & sleep 1000", seconds=0.5)
        left = sorted(_alive_in_sessions(self._scratch.folder / "sessions"))
        if left:
            return False, f"still alive: {', '.join(left)}"
        return result.ended == "timeout", f"{result.ended}, nothing left"

    def _clean_up(self) -> tuple[bool, str]:
        self._sandbox.remove(self._layer)
        gone = not os.path.lexists(self._layer)
        return gone, "the layer is gone" if gone else f"{self._layer} cannot be removed"


def _alive_in_sessions(record: Path) -> Iterator[str]:
    """Yield the processes, as ``pid name``, of the sessions that our containers had."""
    sessions = {int(line.split()[0]) for line in record.read_text().splitlines()} if record.exists() else set()
    for process in psutil.process_iter(["name"]):
        with suppress(OSError, psutil.Error):
            if os.getsid(process.pid) in sessions and process.status() != psutil.STATUS_ZOMBIE:
                yield f"{process.pid} {process.info['name']}"


def _start_fix(flavour: str) -> str:
    fixes = {
        "fakeroot-subuid": _owners_fix(),
        "fakeroot-preload": "install fakeroot, and ask for user namespaces: sysctl kernel.unprivileged_userns_clone=1",
        "userns": "this flavour is for root; ask for user namespaces: sysctl kernel.unprivileged_userns_clone=1",
        "setuid": "this flavour is for root with every capability",
    }
    return fixes[flavour]


def _owners_fix() -> str:
    user = psutil.Process().username()
    return f"ask an administrator: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}"


_PROGRAMS = (
    # program, words that make it tell its version, Debian package
    ("apptainer", ("version",), "apptainer"),
    ("mksquashfs", ("-version",), "squashfs-tools"),
    ("squashfuse", (), "squashfuse"),
    ("fuse-overlayfs", ("--version",), "fuse-overlayfs"),
    ("fakeroot", ("--version",), "fakeroot"),
    ("slirp4netns", ("--version",), "slirp4netns"),
    ("newuidmap", (), "uidmap"),
    ("unshare", ("--version",), "util-linux"),
    ("busybox", (), "busybox-static"),
    ("mmdebstrap", ("--version",), "mmdebstrap"),
)


def probe_programs() -> Iterator[Probe]:
    """Yield whether each program is there, with its version where it tells one."""
    for program, words, package in _PROGRAMS:
        path = shutil.which(program)
        if path is None:
            yield Probe("programs", program, False, "not on PATH", f"install {package}, or ask an administrator for it")
        else:
            yield Probe("programs", program, True, _version(path, words) or path)


def _version(path: str, words: Sequence[str]) -> str:
    if not words:
        return ""
    try:
        answer = subprocess.run(
            [path, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (answer.stdout or answer.stderr).strip().splitlines()
    return lines[0] if lines else ""


def probe_device(device: Path, purpose: str) -> Probe:
    """Tell whether this user can open a device, which is for ``purpose``."""
    if not device.exists():
        return Probe("machine", purpose, False, f"no {device}", f"load the kernel module {device.name}, as root")
    ok = os.access(device, os.R_OK | os.W_OK)
    mode = oct(device.stat().st_mode)[-4:]
    return Probe("machine", purpose, ok, f"{device} {mode}", "" if ok else f"as root: chmod 0666 {device}")


def probe_disk(name: str, folder: Path, least_gib: float) -> Probe:
    """Tell how much is free where ``folder`` lies; less than ``least_gib`` GiB is a miss."""
    try:
        free = shutil.disk_usage(folder).free / GIB
    except OSError as error:
        return Probe("disk", name, False, str(error), f"make {folder} or choose another folder")
    ok = free >= least_gib
    fix = "" if ok else f"free some space or choose another folder: {least_gib:g} GiB should be free"
    return Probe("disk", name, ok, f"{folder}: {free:.1f} GiB free", fix)
