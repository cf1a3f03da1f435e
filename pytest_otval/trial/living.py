"""A container that is started again over its layer after a command at which it died."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType

from pytest_otval.core import Network
from pytest_otval.sandbox.base import Bind, Command, CommandResult, Container
from pytest_otval.trial.layer import Layer


class LivingContainer:
    """See ``sandbox.base.Container``; leaving the context kills it. Raises Conclusion as ``Layer.container`` does."""

    def __init__(self, layer: Layer, network: Network, binds: Sequence[Bind]) -> None:
        self._layer = layer
        self._network = network
        self._binds = list(binds)
        self._stack = ExitStack()
        self._container: Container | None = None

    def __enter__(self) -> LivingContainer:
        self.revive()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def start_seconds(self) -> float:
        """Of the latest one."""
        assert self._container is not None
        return self._container.start_seconds

    def run(self, command: Command) -> CommandResult:
        """See ``sandbox.base.Container``."""
        assert self._container is not None
        return self._container.run(command)

    def revive(self) -> None:
        """Start it anew: what was written is there, every process is dead."""
        self._stack.close()
        self._container = self._stack.enter_context(self._layer.container(self._network, self._binds))
