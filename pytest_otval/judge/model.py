"""The words of a review: criteria and rubrics, opinions with their evidence, and what stands of them in the end.

Nothing here reads a file or asks a model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Kind = Literal["instruction", "trace"]
"""What is reviewed: a task's files, or one attempt at it."""
KINDS: tuple[Kind, ...] = get_args(Kind)

Outcome = Literal["pass", "fail", "not_applicable", "uncertain"]
"""``fail`` is a fault of what is reviewed, whatever the criterion is about."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

Standing = Literal["stands", "refuted", "executed", "disproved", "advisory", "split"]
"""What became of a ``fail``. stands: the refuter could not refute it; refuted: it did, or was unsure; executed: a trial
showed it; disproved: a trial showed the opposite; advisory: nothing refuted it, and it decides nothing; split: some
votes said so, and no outcome has a majority, so that it is no finding."""

NOT_MEASURED = "not measured with a model"
"""What is known of a judge without a calibration, and of criteria for which there are no known faults."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One question of a rubric, which two readers would answer alike."""

    id: str
    question: str
    """Answered by pass or fail; pass is the good answer."""
    guidance: str = ""
    """When it is pass, fail, not applicable."""
    blocking: bool = False
    """Whether a fail that stands fails the item; else it is advisory."""
    execution: Literal["", "wrong-solution", "right-solution"] = ""
    """What a fail has to come with, to be run as a trial: a wrong solution that the tests accept, or a right one that
    they reject. Without such a trial the fail decides nothing."""
    not_applicable: bool = True
    """Whether ``not_applicable`` is an outcome of it."""


@dataclass(frozen=True)
class Rubric:
    """Criteria of one kind, from one file."""

    kind: Kind
    criteria: tuple[Criterion, ...]
    source: str = ""
    """File that it comes from, for people."""

    @cached_property
    def digest(self) -> str:
        """Sha256 over kind and criteria, as 16 hex digits."""
        told = json.dumps([self.kind, [asdict(one) for one in self.criteria]], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A quote from what was shown."""

    document: str
    """Name of the document: a path in the task's folder with ``/``, or ``step 3``."""
    quote: str
    line: int | None = None
    """1-based, where the quote begins, as found in the document; None until it is looked for."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one answer of a model says of one criterion."""

    criterion: str
    outcome: Outcome
    explanation: str = ""
    evidence: tuple[Evidence, ...] = ()
    fix: str = ""
    candidate: str = ""
    """A shell script that solves the task wrongly or otherwise; see ``Criterion.execution``."""
    dropped: str = ""
    """Why it does not count: ``no answer``, or of a fail ``no quote``, ``quote not found: ...``. Its outcome is
    ``uncertain`` then."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What all votes come to about one criterion."""

    criterion: str
    outcome: Outcome
    """The majority's; ``uncertain`` where there is none, or no vote has an answer."""
    votes: tuple[Outcome, ...]
    opinion: Opinion
    """The first vote's that has this outcome; where votes are split, the first that is a fail."""
    standing: Standing | None = None
    """Of a fail, or where votes are split; None before somebody looked at it."""
    why: str = ""
    """The refuter's words, or what the trial showed."""
    measured: str = ""
    """Of a fail: how far this judge is to be believed about this criterion, in words, and who measured it."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What reviews took."""

    answers: int = 0
    """Of models, those from the cache among them."""
    cached: int = 0
    prompt: int = 0
    """Tokens of answers that were paid for, as the next one."""
    completion: int = 0
    usd: float | None = None

    def __add__(self, other: Spending) -> Spending:
        """Return both."""
        usd = None if self.usd is None and other.usd is None else (self.usd or 0) + (other.usd or 0)
        return Spending(
            self.answers + other.answers,
            self.cached + other.cached,
            self.prompt + other.prompt,
            self.completion + other.completion,
            usd,
        )


@dataclass(frozen=True, slots=True)
class Review:
    """One task, or one attempt, reviewed by one model."""

    kind: Kind
    subject: str
    """What was reviewed: empty for the task, else the node id of the attempt."""
    rubric: str
    """Its digest."""
    model: str
    judgements: tuple[Judgement, ...]
    kappa: float | None = None
    """Agreement of the first two votes, over all criteria; None with one vote, or where it is undefined."""
    left_out: tuple[str, ...] = ()
    """What the model was not shown, in words, since it would have been too long."""
    spending: Spending = field(default_factory=Spending)
    classification: str = ""
    """Of an attempt: what review and reward come to together, see ``judge.reconcile``."""

    def as_dict(self) -> dict[str, Any]:
        """Return the review in plain JSON types, for the ledger."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Review:
        """Return the review that ``as_dict`` gave, also after JSON. Raises ValueError for anything else."""
        return _adapter().validate_python(values)


@cache
def _adapter() -> TypeAdapter[Review]:
    # Only who reads what others wrote needs it, and loading it takes a while.
    from pydantic import TypeAdapter

    return TypeAdapter(Review)
