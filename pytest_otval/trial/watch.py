"""Watching a trial: what its phases ask of the network and change in the file system, phase by phase.

A sandbox around the trial's own; the trial does not know of it. A phase begins with the first command of the task in it
and ends with its container, or with our next command where one container serves two phases.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_otval.sandbox.base import Command, CommandResult, Container, ContainerSpec, Phase, Sandbox
from pytest_otval.sandbox.traffic import Heard, Traffic
from pytest_otval.trial.changed import Changes, Moment


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one phase in one container."""

    phase: Phase
    heard: Heard
    changes: Changes


class WatchingSandbox:
    """See ``base.Sandbox``. What phases do is in ``seen``, in their order."""

    def __init__(self, inner: Sandbox) -> None:
        self._inner = inner
        self.seen: list[Seen] = []
        self.flavour, self.maps_uids = inner.flavour, inner.maps_uids
        self.shell_line, self.size, self.remove = inner.shell_line, inner.size, inner.remove
        self.make_readable, self.touched = inner.make_readable, inner.touched
        self.save_layer, self.restore_layer, self.layer_holds = inner.save_layer, inner.restore_layer, inner.layer_holds

    @contextmanager
    def open(self, spec: ContainerSpec) -> Iterator[Container]:
        """See ``base.Sandbox``."""
        traffic = Traffic()
        watched: _Watched | None = None
        try:
            with self._inner.open(replace(spec, traffic=traffic)) as container:
                watched = _Watched(container, self._inner, spec.overlay, traffic, self.seen)
                yield watched
        finally:
            if watched is not None:
                watched.end()


class _Watched:
    """See ``base.Container``."""

    def __init__(
        self, inner: Container, sandbox: Sandbox, overlay: Path | None, traffic: Traffic, seen: list[Seen]
    ) -> None:
        self._inner = inner
        self._sandbox = sandbox
        self._overlay = overlay
        self._traffic = traffic
        self._seen = seen
        self._phase: Phase | None = None
        self._began: Moment | None = None

    @property
    def start_seconds(self) -> float:
        """See ``base.Container``."""
        return self._inner.start_seconds

    def run(self, command: Command) -> CommandResult:
        """See ``base.Container``."""
        phase = command.phase
        if phase != self._phase:
            self.end()
        if phase is not None and self._phase is None and self._overlay is not None:
            self._phase, self._began = phase, Moment(self._overlay.parent / f"began-{secrets.token_hex(8)}")
            self._traffic.take()
        return self._inner.run(command)

    def end(self) -> None:
        """Note what the phase did that ends now, if one does. No file of the layer is opened."""
        if self._phase is None or self._began is None or self._overlay is None:
            return
        phase, self._phase = self._phase, None
        changes = self._began.changes(self._sandbox, self._overlay)
        self._seen.append(Seen(phase, self._traffic.take(), changes))
