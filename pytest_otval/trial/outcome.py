"""What a trial left behind."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pytest_otval.core import Conclusion
from pytest_otval.trial.layer import timed
from pytest_otval.trial.reward import RewardFiles, Rewards, Side

Scope = Literal["phase", "trial"]
"""phase: the agent's processes die before the verifier starts; trial: one container serves both phases."""

Span = tuple[datetime, datetime]
"""Begin and end, UTC."""


@dataclass(slots=True)
class StepOutcome:
    """What one step left; a single-step task has one, with the name ``""``."""

    name: str
    files: RewardFiles | None = None
    """None: the verifier did not come to its end."""
    rewards: Rewards | None = None
    """By our rules; None where they find a fault."""
    agent_status: int | None = None
    verifier_status: int | None = None
    left_alive: int = 0
    """Processes of the agent at the end of its phase."""
    used: dict[str, Any] = field(default_factory=dict)
    """What the agent used, in the names of Harbor's ``agent_result``."""
    runtime: str = ""
    """The verifier's, as the ledger names it; empty for none."""
    python: str = ""
    """What ``OT_PYTHON`` of a verifier with a runtime was: the runtime's Python or the image's."""
    test_order: Mapping[str, int] | None = None
    """``seed``, and how many ``tests`` it put in order, where the order of tests was to be another than theirs."""

    def as_dict(self) -> dict[str, Any]:
        """Return the step in plain JSON types."""
        return {
            "name": self.name,
            "rewards": None if self.rewards is None else dict(self.rewards),
            "agent_status": self.agent_status,
            "verifier_status": self.verifier_status,
            "left_alive": self.left_alive,
            **({"runtime": self.runtime, "python": self.python} if self.runtime else {}),
            **({} if self.test_order is None else {"test_order": dict(self.test_order)}),
        }


@dataclass(slots=True)
class TrialOutcome:
    """What a trial left, whether it came to its end or not."""

    agent: str
    scope: Scope
    evidence: Path
    """Folder with the logs of its phases and what it left below /logs, as Harbor lays them out."""
    steps: list[StepOutcome] = field(default_factory=list)
    side: Side = "high"
    """The agent's: ``low``: the highest score is expected of it, else the lowest."""
    version: str = ""
    """The agent's."""
    model: str = ""
    """That drives the agent; empty for none."""
    runtime: str = ""
    """The agent's, as the ledger names it; empty for none."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By phase, and ``total``: from the first file copied to the last reward read; images are made before."""
    reproduce: str = ""
    """A command line for a shell in a container as its last one, over its writable layer where that was kept."""
    conclusion: Conclusion | None = None
    """Why it ended before its last reward was read."""
    spans: dict[tuple[str, str], Span] = field(default_factory=dict)
    """When a phase began and ended, by step and phase; what is of no step has the step ``""``."""
    _began: tuple[datetime, float] = field(default_factory=lambda: (datetime.now(UTC), time.monotonic()), repr=False)

    @contextmanager
    def timed(self, phase: str, step: str = "") -> Iterator[None]:
        """Add the time spent in the block to the phase's seconds, and keep when it was."""
        began = self._now()
        try:
            with timed(self.seconds, phase):
                yield
        finally:
            self.spans[step, phase] = (began, self._now())

    def _now(self) -> datetime:
        # The clock may be set meanwhile.
        began, reading = self._began
        return began + timedelta(seconds=time.monotonic() - reading)


def step_folder(evidence: Path, step: str) -> Path:
    """Return where the evidence of a step lies: of the only one, with the name ``""``, that of the trial."""
    return evidence / "steps" / step if step else evidence
