"""Counts of what a judge says of faults that are known to be there, and of none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated

from pydantic import Field

from pytest_otval.judge.labels import is_finding
from pytest_otval.judge.model import Review, Rubric
from pytest_otval.judge.seeding.texts import Fault
from pytest_otval.llm.estimates import Interval, wilson

Count = Annotated[int, Field(ge=0, lt=10**9)]
"""In files of others, too."""


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    hits: int
    count: int

    @property
    def rate(self) -> float | None:
        """None where nothing was counted."""
        return self.hits / self.count if self.count else None

    @property
    def interval(self) -> Interval | None:
        """Wilson's, of 95 %."""
        return wilson(self.count, self.hits) if self.count else None

    def __str__(self) -> str:
        if (interval := self.interval) is None:
            return "-"
        return f"{self.hits / self.count:.2f} ({self.hits}/{self.count}, {interval.low:.2f}-{interval.high:.2f})"


@dataclass(frozen=True, slots=True)
class Tally:
    """What was counted about one criterion."""

    criterion: str
    found: Count = 0
    """Seeded faults that it found."""
    missed: Count = 0
    raised: Count = 0
    """Findings where nothing was changed."""
    quiet: Count = 0
    """Nothing was changed, and there is no finding."""
    placed: Count = 0
    """Of ``found``: those with a quote from a document in which the fault is."""
    agreed: Count = 0
    """Findings of runs that people agreed with."""
    disagreed: Count = 0

    @property
    def is_measured(self) -> bool:
        """Whether there were faults to find, and tasks without any."""
        return self.found + self.missed > 0 and self.raised + self.quiet > 0

    @property
    def precision(self) -> Share:
        """Of findings, those that are right; of none where there was no fault to find."""
        return Share(self.found, self.found + self.raised) if self.is_measured else Share(0, 0)

    @property
    def recall(self) -> Share:
        """Of seeded faults, those that were found."""
        return Share(self.found, self.found + self.missed)

    @property
    def labelled(self) -> Share:
        """Of findings with labels, those that people agreed with."""
        return Share(self.agreed, self.agreed + self.disagreed)

    @property
    def kappa(self) -> float | None:
        """Cohen's (1960) of judge and truth; None where nothing was measured."""
        total = self.found + self.missed + self.raised + self.quiet
        if not self.is_measured:
            return None
        seen = (self.found + self.quiet) / total
        said, true = self.found + self.raised, self.found + self.missed
        chance = (said * true + (total - said) * (total - true)) / total**2
        return (seen - chance) / (1 - chance)

    @property
    def assured(self) -> float | None:
        """What precision is shown to be at least, where a half of what is reviewed has the fault; None: not measured.

        From the lower end of recall and the upper end of the share of false alarms. How many faults were seeded makes
        no difference to it, as it does to precision; who says the same of everything never reaches a half.
        """
        found, alarms = self.recall.interval, Share(self.raised, self.raised + self.quiet).interval
        return found.low / (found.low + alarms.high) if found and alarms else None

    def is_below(self, floor: float) -> bool:
        """Whether its findings may decide nothing: they are not assured to that degree, or labels show the opposite."""
        people = self.labelled.interval
        return (self.assured is not None and self.assured < floor) or (people is not None and people.high < floor)


def total(counts: Iterable[Tally]) -> Tally:
    """Return the sum over criteria that were measured."""
    measured = [one for one in counts if one.is_measured]
    names = [one.name for one in fields(Tally) if one.name != "criterion"]
    return Tally("all measured", *(sum(getattr(one, name) for one in measured) for name in names))


def tallies(
    rubric: Rubric, reviews: Iterable[tuple[Fault | None, Review]], people: Mapping[str, tuple[int, int]]
) -> tuple[Tally, ...]:
    """Return the counts of each criterion in the rubric's order.

    A review of a seeded fault says something of that fault's criterion alone: what else is wrong then, nobody knows.
    ``people``: as ``labels.agreement`` gives it.
    """
    counts = {one.id: Tally(one.id) for one in rubric.criteria}
    for fault, review in reviews:
        for judgement in review.judgements:
            tally = counts.get(judgement.criterion)
            if tally is None or (fault is not None and fault.criterion != judgement.criterion):
                continue
            says = is_finding(judgement)
            if fault is None:
                tally = replace(tally, raised=tally.raised + says, quiet=tally.quiet + (not says))
            else:
                placed = says and any(one.document in fault.documents for one in judgement.opinion.evidence)
                tally = replace(
                    tally,
                    found=tally.found + says,
                    missed=tally.missed + (not says),
                    placed=tally.placed + placed,
                )
            counts[judgement.criterion] = tally
    for criterion, (agreed, disagreed) in people.items():
        if criterion in counts:
            counts[criterion] = replace(counts[criterion], agreed=agreed, disagreed=disagreed)
    return tuple(counts.values())
