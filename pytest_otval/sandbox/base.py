"""What the rest of the package asks of a sandbox: containers, and safe handling of what they wrote.

A container is one private set of namespaces over an image and, perhaps, a writable layer. Commands run in it one
after the other, as first children of a process of ours; when it is closed, every process in it is dead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from pytest_otval.core import Network
from pytest_otval.sandbox.gpus import Gpu

if TYPE_CHECKING:
    from pytest_otval.sandbox.traffic import Traffic

Ended = Literal["exit", "timeout", "memory", "storage", "killed", "refused"]
"""How a command ended: by itself, at one of our limits, killed from outside, or never begun since its user or workdir
does not exist (the log says which)."""

Phase = Literal["setup", "agent", "verifier"]
"""What a command of a task is part of."""

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""PATH of an image that declares none (what Docker uses)."""

TOOLBOX = "/.otval"
"""Where the read-only toolbox is mounted in each container; ``/.otval/busybox`` is a static busybox."""

UPPER = "upper"
"""In the folder of a writable layer: what differs from the image."""
WHITEOUT = ".wh."
"""Begins the name by which fuse-overlayfs notes there what was removed, where it may make no device."""


class NoStartError(Exception):
    """The container did not start: nothing of the task ran. The text is the runtime's own last line."""


@dataclass(frozen=True, slots=True)
class Bind:
    """A folder made for this one container (writable), or a squashfs image (read-only), at ``target``."""

    source: Path
    target: str
    kind: Literal["folder", "squashfs"] = "folder"
    inside: str = "/"
    """Which folder of a squashfs is shown."""
    own_layer: bool = False
    """Whether a squashfs can be written to: in a layer of this one container, which goes with it. A flavour whose root
    may not mount (``userns``) leaves it read-only."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a container may use. None means no limit of ours."""

    cpus: float | None = None
    """How many cores it is pinned to, rounded up."""
    memory_mb: int | None = None
    """Sum of the proportional set sizes of its processes, in MiB."""
    storage_mb: int | None = None
    """What its writable layer holds, in MiB."""
    gpus: int = 0
    gpu_types: Sequence[str] = ()
    """Models of GPUs of which any will do; none: all."""
    log_bytes: int = 4 * 1024 * 1024
    """How much of a command's output is kept: the first and the last half of this; the middle is dropped."""


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """What a container is made of."""

    image: Sequence[Path]
    """A squashfs (``.sqfs``) or SIF image, then squashfs files that add to it, the topmost last."""
    overlay: Path | None = None
    """Folder of the private writable layer, made if missing; None for one that is thrown away at the end."""
    binds: Sequence[Bind] = ()
    network: Network = "none"
    limits: Limits = field(default_factory=Limits)
    cores: frozenset[int] | None = None
    """The cores that it may be pinned to; None for all of this process's."""
    gpus: Sequence[Gpu] = ()
    """The GPUs that it can use."""
    traffic: Traffic | None = None
    """Who is told what the container asks of the public network."""
    for_build: bool = False
    """Builds need owners to look right within one command where uids cannot be mapped (the ``fakeroot`` program)."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run in a container, with exactly this environment."""

    argv: Sequence[str]
    log: Path
    """File for its output (stdout and stderr together), made or replaced."""
    env: Mapping[str, str] = field(default_factory=dict)
    user: str | int | None = None
    """Name, uid or ``name:group``; None is the container's root."""
    workdir: str = "/"
    """Made if missing."""
    seconds: float | None = None
    """Time limit; at it the whole container is killed."""
    stdout: int | None = None
    """A file descriptor that gets stdout instead of the log (for streams of ours)."""
    phase: Phase | None = None
    """The phase that it is the task's own command of; None for a command of ours."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended."""

    ended: Ended
    status: int | None
    """Exit status as our first process recorded it; None where there is none, or the command killed its recorder."""
    seconds: float
    log: Path
    left_alive: int = 0
    """Processes that it left running in the container."""

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with status 0."""
        return self.ended == "exit" and self.status == 0


class Container(Protocol):
    """A started container."""

    def run(self, command: Command) -> CommandResult:
        """Run a command to its end. Once one ended other than by ``exit``, the container is dead."""

    @property
    def start_seconds(self) -> float:
        """Seconds from the call until the first process was ready."""


class Sandbox(Protocol):
    """Makes containers, and touches what they wrote."""

    @property
    def flavour(self) -> str:
        """Name of the way uids are mapped: fakeroot-subuid, fakeroot-preload, userns or setuid."""

    @property
    def maps_uids(self) -> bool:
        """Whether a file's owner other than root survives from one container to the next."""

    def open(self, spec: ContainerSpec) -> AbstractContextManager[Container]:
        """Start a container; leaving the context kills it. Raises NoStartError."""

    def shell_line(self, spec: ContainerSpec) -> str:
        """Return a command line that gives a person a shell in such a container."""

    def make_readable(self, folder: Path) -> None:
        """Let the host's user read every folder and regular file below ``folder`` (links are not followed)."""

    def size(self, folder: Path) -> int:
        """Bytes that the regular files below ``folder`` take on disk."""

    def touched(self, folder: Path, since: Path, target: Path, most: int) -> None:
        """List what below ``folder`` was written, made or changed in any way after the file ``since`` was.

        For each entry ``target`` gets the kind as ``find`` calls it (``f``, ``d``, ``l``, ...), a blank, the path below
        ``folder`` and a NUL, at most ``most`` bytes in all; one of the kind ``!`` where something could not be read.
        Nothing is changed by it.
        """

    def remove(self, folder: Path) -> None:
        """Delete a folder that containers wrote into, whatever its owners and modes."""

    def save_layer(self, overlay: Path, target: Path) -> None:
        """Copy a writable layer to the new folder ``target``. Raises OSError."""

    def layer_holds(self, overlay: Path, path: str) -> bool:
        """Whether a writable layer has anything in a folder (absolute, as containers see it), or may have.

        False where it is no folder, or links lead to it. No container of the layer may be alive.
        """

    def restore_layer(self, overlay: Path, restores: Callable[[str], bool], saved: Path | None) -> None:
        """Take out of a writable layer what it has at its top under the names chosen, so that the image's shows again.

        Of a layer that was ``saved`` before, what stood there comes back. Names of what was removed may have ``.wh.``
        before them. No container of the layer may be alive. Raises OSError.
        """
