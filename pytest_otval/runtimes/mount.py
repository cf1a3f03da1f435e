"""What a phase of a trial gets of the runtimes: from the cache, or the word that its script has to install.

The agent's runtime is one more layer under the trial's writable one. The verifier's is mounted over the agent's root,
with a writable layer of the verifier's container alone: nothing that the agent left at its path can be seen.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_otval.core import Conclusion, Network
from pytest_otval.runtimes.record import ROOT, TASK_JSON, VERIFIER_JSON, Reference, Runtime, read_reference
from pytest_otval.runtimes.script import Asking, asking_of_agent, asking_of_verifier
from pytest_otval.runtimes.store import Runtimes, UnusableError
from pytest_otval.sandbox.base import DEFAULT_PATH, TOOLBOX, Bind
from pytest_otval.task.load import Step, Task

State = Literal["ready", "missing", "save"]
"""What the helper is told: the runtime is there; the script has to install it; it is to be installed and saved."""

TOLD = "/.otval-runtime"
"""Where the helper reads its state, and says when an installation is done."""
_STATE, DONE = "state", "done"


@dataclass(frozen=True, slots=True)
class Supply:
    """A runtime as one phase gets it."""

    name: str
    path: str
    reference: Reference | None = None
    """None where no file of the task names any."""
    runtime: Runtime | None = None
    """None where it cannot be used."""
    why: str = ""
    """Why it cannot be used."""
    file: Path | None = None
    """Its squashfs."""
    asks: bool = False
    """Whether a script asks for it; only then it can be installed."""

    @property
    def state(self) -> State:
        """What the helper is told."""
        return "missing" if self.runtime is None else "ready"

    @property
    def layers(self) -> tuple[Path, ...]:
        """The image layer that holds it, if it can be used."""
        return () if self.file is None else (self.file,)

    @property
    def binds(self) -> list[Bind]:
        """The mount over an agent's root, if it can be used."""
        if self.file is None:
            return []
        return [Bind(self.file, self.path, "squashfs", inside=self.path, own_layer=True)]

    def told(self, folder: Path) -> list[Bind]:
        """Make the folder by which the helper learns its state, as ``folder``."""
        return [Bind(tell(folder, self.name, self.path, self.state, self.why), TOLD)] if self.asks else []

    def require(self, network: Network) -> None:
        """Raise Conclusion ``runtime-missing`` where it is neither in the cache nor can it be installed."""
        if self.runtime is None and (network == "none" or not self.asks):
            raise self._missing("there is no network to install it" if self.asks else "no script installs it")

    def require_done(self, folder: Path) -> None:
        """Raise Conclusion ``runtime-missing`` where an installation was due and did not come to its end.

        ``folder`` is the one of ``told``, readable by now. What ran without its dependencies says nothing of a task.
        """
        if self.runtime is None and not (folder / DONE).is_file():
            raise self._missing("its installation did not come to its end")

    def _missing(self, what: str) -> Conclusion:
        advice = "--otval-save-runtimes saves it where there is a network"
        return Conclusion("runtime-missing", f"{self.name}: {self.why}, and {what}: {advice}")

    def variables(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return a phase's variables with what lets its scripts find helper and runtime."""
        found = {**env, "OT_RUNTIME": self.path}
        if self.asks:
            # In front: what an agent left in a folder of PATH must not be taken for the helper.
            found["PATH"] = f"{TOOLBOX}/lib:{env.get('PATH', DEFAULT_PATH)}"
        if self.runtime is not None and self.runtime.python:
            found["OT_PYTHON"] = f"{self.path}/{self.runtime.python}"
        return found

    def __str__(self) -> str:
        """For the ledger."""
        return str(self.reference) if self.runtime is not None else f"{self.name}: installed in the trial"


def tell(folder: Path, name: str, path: str, state: State, why: str = "") -> Path:
    """Make a folder from which the helper reads its state, and into which any user of a container may write."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)
    words = {"_ot_state": state, "_ot_name": name, "_ot_path": path, "_ot_why": why}
    (folder / _STATE).write_text("".join(f"{key}={shlex.quote(value)}\n" for key, value in words.items()))
    (folder / _STATE).chmod(0o644)
    return folder


def agent_supply(runtimes: Runtimes, task: Task) -> Supply | None:
    """Return the runtime of a task's agent; None where it has none. Raises Conclusion ``bad-task``."""
    return _supply(runtimes, read_reference(task.path / "setup_files" / TASK_JSON), asking_of_agent(task))


def verifier_supply(runtimes: Runtimes, step: Step) -> Supply | None:
    """Return the runtime of a step's verifier; None where it has none. Raises Conclusion ``bad-task``."""
    folders = [folder for folder in (step.tests, step.shared_tests) if folder is not None]
    named = (read_reference(folder / VERIFIER_JSON) for folder in folders)
    return _supply(runtimes, next(filter(None, named), None), asking_of_verifier(step))


def _supply(runtimes: Runtimes, reference: Reference | None, asking: Asking | None) -> Supply | None:
    if reference is None:
        if asking is None:
            return None
        return Supply(asking.name, f"{ROOT}/{asking.name}", why=f"no {asking.json.name} names it", asks=True)
    if asking is not None and asking.name != reference.name:
        words = f"{asking.json.name} names {reference.name}, {asking.script} asks for {asking.name}"
        raise Conclusion("bad-task", f"{asking.folder.name}/{words}: remove the file and save the runtime anew")
    asks = asking is not None
    try:
        runtime = runtimes.find(reference)
    except UnusableError as error:
        return Supply(reference.name, reference.path, reference, why=str(error), asks=asks)
    return Supply(reference.name, reference.path, reference, runtime, file=runtimes.file(runtime), asks=asks)
