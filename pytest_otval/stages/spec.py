"""What a stage is: its name, its question, and where its answer comes from. Listing them imports no stage."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_otval.core import OtvalUsageError, stage_of

if TYPE_CHECKING:
    from pytest_otval.judge.model import Kind


@dataclass(frozen=True, slots=True)
class Stage:
    """One question about a task."""

    name: str
    """Stands in node ids: a Python identifier, the stage's mark; of one attempt ``MARK[MODEL-3]``."""
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
    model: str = ""
    """Of an attempt: the model that makes it, as its endpoint knows it."""
    attempt: int = 0
    """Of an attempt: which it is of that model."""
    family: str = ""
    """A further mark, which selects it together with its relatives; empty for none."""

    @property
    def mark(self) -> str:
        """What ``-m`` selects it by, shared by all attempts."""
        return stage_of(self.name)

    @property
    def marks(self) -> tuple[str, ...]:
        """All marks that its items have."""
        return (self.mark, self.family) if self.family else (self.mark,)


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

TEACHER = Stage("teacher", "pytest_otval.stages.teacher:answer", "can a model solve it? One item an attempt")

JUDGE_TASK = Stage(
    "judge_task",
    "pytest_otval.stages.judge_task:answer",
    "what does a model say of the task's files?",
    containers=False,
    family="judge",
)
JUDGE_TRACE = Stage(
    "judge_trace",
    "pytest_otval.stages.judge_trace:answer",
    "what does a model say of the attempts at it?",
    containers=False,
    family="judge",
)
JUDGES = (JUDGE_TASK, JUDGE_TRACE)
"""Only what a model claims and a trial can show needs a container: where none runs, that claim decides nothing."""

KIND_OF: Mapping[str, Kind] = {JUDGE_TASK.name: "instruction", JUDGE_TRACE.name: "trace"}
"""Of which kind the rubric of a stage is."""

JUDGE_MARKS = frozenset(mark for stage in JUDGES for mark in stage.marks)

EVERY_STAGE = (*STAGES, TEACHER, *JUDGES)
"""In the order they run, attempts as one."""

OWN_MARKS = frozenset(mark for stage in EVERY_STAGE for mark in stage.marks)


def own_stages(models: Iterable[str] = (), attempts: int = 1, judge: bool = False) -> tuple[Stage, ...]:
    """Return our stages; of the teacher's one for each attempt of each model, a judge's where there is one.

    Raises OtvalUsageError for two models whose names are the same in node ids.
    """
    keys: dict[str, str] = {}
    for model in models:
        key = model_key(model)
        if keys.setdefault(key, model) != model:
            raise OtvalUsageError(f"models {keys[key]!r} and {model!r} are both {key!r} in node ids: run them apart")
    made = (
        replace(TEACHER, name=f"{TEACHER.name}[{key}-{number}]", model=model, attempt=number)
        for key, model in keys.items()
        for number in range(attempts)
    )
    return (*STAGES, *made, *(JUDGES if judge else ()))


def model_key(model: str) -> str:
    """Return how a model stands in node ids. Raises OtvalUsageError for a name without a letter or digit."""
    key = re.sub(r"[^A-Za-z0-9._]+", "-", model).strip("-")
    if not key:
        raise OtvalUsageError(f"{model!r} is no name of a model")
    return key
