"""The runtime of one phase of a trial: what its container gets, and whether an installation that was due was made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pytest_otval.core import REASONS, Conclusion, Network, Verdict
from pytest_otval.images.model import Files
from pytest_otval.runtimes.mount import Supply
from pytest_otval.runtimes.python import image_python, only_in_image
from pytest_otval.sandbox.base import Bind, Sandbox


class PhaseRuntime:
    """A phase's runtime, if it has one."""

    def __init__(self, supply: Supply | None, folder: Path, network: Network) -> None:
        """``folder`` is of the trial, and may not exist. Raises Conclusion ``runtime-missing``."""
        if supply is not None:
            supply.require(network)
        self._supply = supply
        self._told = folder / "runtime"

    def __bool__(self) -> bool:
        """Whether there is one."""
        return self._supply is not None

    def __str__(self) -> str:
        """For the ledger; empty where there is none."""
        return "" if self._supply is None else str(self._supply)

    @property
    def layers(self) -> Files:
        """The layers that hold an agent's."""
        return () if self._supply is None else self._supply.layers

    def binds(self, mounted: bool) -> list[Bind]:
        """Make what the container gets; ``mounted`` where no layer holds the runtime."""
        if self._supply is None:
            return []
        return [*self._supply.told(self._told), *(self._supply.binds if mounted else ())]

    def variables(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of the phase's scripts."""
        return dict(env) if self._supply is None else self._supply.variables(env)

    def verifier_variables(
        self, env: Mapping[str, str], image: Files, tests: Iterable[Path], workdir: str
    ) -> dict[str, str]:
        """Return the variables of a verifier's scripts.

        ``OT_PYTHON`` is the runtime's Python; the image's where there is none, or where ``tests`` need its packages.
        """
        found = self.variables(env)
        of_image = image_python(image, env)
        runtime = self._supply.runtime if self._supply is not None else None
        if runtime is None or not runtime.python or only_in_image(tests, runtime, image, of_image, workdir):
            found["OT_PYTHON"] = of_image
        return found

    @contextmanager
    def required(self, sandbox: Sandbox) -> Iterator[None]:
        """Run a phase, its container included. Without the runtime and a whole installation there is no answer.

        Raises Conclusion ``runtime-missing`` for it, whatever the task's own answer would be.
        """
        try:
            yield
        except Conclusion as conclusion:
            if REASONS[conclusion.reason].verdict is Verdict.FAIL:
                self._require_done(sandbox)
            raise
        self._require_done(sandbox)

    def _require_done(self, sandbox: Sandbox) -> None:
        if self._supply is not None and self._told.is_dir():
            sandbox.make_readable(self._told)
            self._supply.require_done(self._told)
