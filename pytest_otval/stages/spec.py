"""What a stage is: its name, its question, and where its answer comes from. Listing them imports no stage."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stage:
    """One question about a task."""

    name: str
    """Stands in node ids, and is the stage's mark: a Python identifier."""
    answer: str
    """``module:function``, as entry points are written; called with a ``Machine`` and a ``Question``, it returns a
    ``StageResult`` or raises ``Conclusion``. Imported when the first item of the stage runs."""
    question: str
    """In a few words, for ``pytest --markers``."""
    recall: str = ""
    """``module:function``, called with a ``Machine`` and a ``Known``: returns an answer that was given before to the
    very same question, or None. It saves loading the task."""
    containers: bool = True
    """Whether it runs any. One that does not is asked on a machine that can run none, too, and about the task's time
    limits as they are written."""
    by_default: bool = False
    """Whether it runs without ``-m``."""
    repeats: bool = False
    """Whether ``--otval-repeat`` asks it more than once: its answer may differ from one attempt to the next."""


STAGES = (
    Stage(
        "static",
        "pytest_otval.stages.static:answer",
        "are the files right?",
        recall="pytest_otval.stages.static:recall",
        containers=False,
        by_default=True,
    ),
    Stage("build", "pytest_otval.stages.build:answer", "does the image build?", by_default=True),
    Stage(
        "oracle",
        "pytest_otval.stages.trials:oracle",
        "does the reference solution score at the top?",
        by_default=True,
        repeats=True,
    ),
    Stage(
        "noop",
        "pytest_otval.stages.trials:noop",
        "does doing nothing score at the bottom?",
        by_default=True,
        repeats=True,
    ),
    Stage("adversary", "pytest_otval.stages.adversary:answer", "can the verifier be made to pay for nothing?"),
    Stage("hermetic", "pytest_otval.stages.hermetic:answer", "does the answer depend on the network or on leftovers?"),
)
"""Our own stages, in the order they run."""

OWN_STAGES = frozenset(stage.name for stage in STAGES)
