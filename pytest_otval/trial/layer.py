"""The writable layer of a trial, the containers over it, and what all phases share."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.core import Conclusion, Network
from pytest_otval.images.failures import nearly_full
from pytest_otval.images.model import Files, Image, ImageRequest
from pytest_otval.runtimes.store import Runtimes
from pytest_otval.sandbox.admission import Admission
from pytest_otval.sandbox.base import (
    TOOLBOX,
    WHITEOUT,
    Bind,
    CommandResult,
    Container,
    ContainerSpec,
    Limits,
    NoStartError,
    Sandbox,
)
from pytest_otval.sandbox.leftovers import OwnScratch
from pytest_otval.task.load import Task
from pytest_otval.task.model import EnvironmentConfig
from pytest_otval.trial.restoring import Restoring


@dataclass(frozen=True, slots=True)
class Bench:
    """What trials need of the machine."""

    sandbox: Sandbox
    scratch: OwnScratch
    ensure_image: Callable[[ImageRequest], Image]
    allow_public: bool
    """Whether a phase may have the public network at all."""
    admission: Admission
    runtimes: Runtimes
    keep: bool = False
    """Leave the trial's folders in place."""
    share: int = 1
    """How many of such trials may hold a core together."""


class Layer:
    """The writable layer in ``folder`` over an image."""

    def __init__(self, bench: Bench, image: Image, limits: Limits, folder: Path) -> None:
        self.bench = bench
        self.image = image
        self.limits = limits
        self.folder = folder
        self.overlay = folder / "overlay"
        self.runtimes: Files = ()
        """Layers between the image and the writable one."""
        self.last: ContainerSpec | None = None
        """The latest container over it."""
        self.written = False
        """Whether a process of the task ran on the layer, so that its root is no longer trusted."""
        self._set_up: Path | None = None

    @contextmanager
    def container(self, network: Network, binds: list[Bind]) -> Iterator[Container]:
        """Start a container over the layer.

        Raises Conclusion: ``tampered`` where the root no longer starts, ``no-start`` on a pristine one.
        """
        held = self.bench.admission.held
        cores, gpus = (held.cores, held.gpus[: self.limits.gpus]) if held else (None, ())
        if self.written:
            binds = [*self._covers(with_libraries=bool(gpus)), *binds]
        files = (*self.image.files, *self.runtimes)
        self.last = spec = ContainerSpec(files, self.overlay, binds, network, self.limits, cores, gpus)
        try:
            with self.bench.sandbox.open(spec) as container:
                yield container
        except NoStartError as error:
            reason = "tampered" if self.written else "no-start"
            raise Conclusion(reason, f"no container starts: {error}") from None

    def remember(self) -> None:
        """Note what set-up changed: it is no agent's, and comes back when an agent's changes go. Raises Conclusion."""
        self._set_up = self.folder / "set-up"
        with self.telling("no-start", "what setup.sh changed cannot be saved"):
            self.bench.sandbox.save_layer(self.overlay, self._set_up)

    def holds(self, path: str) -> bool:
        """Whether something that was written may lie in a folder; no link is followed."""
        return self.bench.sandbox.layer_holds(self.overlay, path)

    def clear(self, names: Collection[str]) -> None:
        """Take out what was written at the top under these names. Raises Conclusion."""
        with self.telling("tampered", "what the agent left cannot be cleared"):
            self.bench.sandbox.restore_layer(self.overlay, lambda name: name.removeprefix(WHITEOUT) in names, None)

    def restore(self, restoring: Restoring) -> None:
        """Put back the image's own, and what set-up changed. Raises Conclusion."""
        with self.telling("tampered", "the image's own cannot be put back"):
            self.bench.sandbox.restore_layer(self.overlay, restoring.restores, self._set_up)

    @contextmanager
    def telling(self, reason: str, words: str) -> Iterator[None]:
        """Raise OSErrors of work on the trial's files as Conclusion: a full disk as such, else as ``reason``."""
        try:
            yield
        except OSError as error:
            if nearly_full(self.folder):
                full = f"the scratch {self.folder.parent} is full: free some space or set OT_SCRATCH"
                raise Conclusion("host-disk-full", full) from None
            raise Conclusion(reason, f"{words}: {error}") from None

    def _covers(self, with_libraries: bool) -> list[Bind]:
        """Hide what the runtime would run of the container's root before any program of ours: /.singularity.d/env/*.sh.

        The runtime mounts a GPU's libraries in that folder first, so then only its parts that are run are covered.
        """
        cover = self.folder / "singularity.d"
        cover.mkdir(exist_ok=True)
        parts = ("/env", "/actions") if with_libraries else ("",)
        return [Bind(cover, f"/.singularity.d{part}") for part in parts]


def environments_of(task: Task) -> list[EnvironmentConfig]:
    """Return the environments of the agent and of separate verifiers."""
    assert task.config is not None
    return [task.config.environment, *(step.verifier_image.environment for step in task.steps if step.verifier_image)]


def limits_of(environment: EnvironmentConfig) -> Limits:
    """Return what an environment may use."""
    cpus = None if environment.cpus is None else float(environment.cpus)
    gpus, types = environment.gpus or 0, tuple(environment.gpu_types or ())
    return Limits(cpus, environment.memory_mb, environment.storage_mb, gpus, types)


def network_of(mode: str, allow_public: bool) -> Network:
    """Return the network of a phase. Raises Conclusion ``allowlist`` or ``needs-network``."""
    if mode == "allowlist":
        raise Conclusion("allowlist", "network_mode = 'allowlist' cannot be enforced here")
    if mode == "no-network":
        return "none"
    if not allow_public:
        raise Conclusion("needs-network", "the task asks for the public network and this run has none")
    return "public"


def run_script(path: str) -> list[str]:
    """Return the words that run a script as a shell runs it: by its shebang, else by the shell itself."""
    return [f"{TOOLBOX}/sh", "-c", '"$0"', path]


_ENDS = {
    "memory": ("memory-limit", "used more than memory_mb"),
    "storage": ("storage-limit", "wrote more than storage_mb"),
    "killed": ("killed", "had its container killed from outside"),
}


def require_end(result: CommandResult, who: str, timeout: str) -> None:
    """Raise the Conclusion of a command that did not end by itself; ``timeout`` is the class of a time-out."""
    if result.ended == "exit":
        return
    last = tail(result.log)
    if result.ended == "timeout":
        raise Conclusion(timeout, f"{who} did not end within its limit ({result.seconds:.0f} s)", last)
    if result.ended == "refused":
        raise Conclusion("bad-task", f"{who} cannot start: {last.splitlines()[-1] if last else 'no reason given'}")
    reason, words = _ENDS[result.ended]
    raise Conclusion(reason, f"{who} {words}", last)


def tail(log: Path, lines: int = 15, limit: int = 4096) -> str:
    """Return the last lines of a log, at most ``limit`` bytes, with control characters replaced."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - limit))
            text = file.read(limit).decode(errors="replace")
    except OSError:
        return ""
    shown = "".join(sign if sign.isprintable() or sign in "\n\t" else "\N{REPLACEMENT CHARACTER}" for sign in text)
    return "\n".join(shown.splitlines()[-lines:])


@contextmanager
def timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    """Add the time spent in the block to ``seconds[phase]``."""
    began = time.monotonic()
    try:
        yield
    finally:
        seconds[phase] = seconds.get(phase, 0.0) + time.monotonic() - began
