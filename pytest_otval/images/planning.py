"""What planning many environments tells as a whole: how many images they need, and why some get none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from pytest_otval.core import Conclusion
from pytest_otval.images.bases import Base
from pytest_otval.images.model import ImageConfig

_INSTRUCTION = re.compile(r"[^\n]*?:\d+: ([A-Z]+(?: --[a-z]+)?)\b")
"""In a headline, behind file and line."""

NOT_OF_IMAGES = ("bad-task", "compose", "windows")
"""Classes of tasks that have nothing to plan: no Dockerfile is at fault."""


class UnresolvedSource:
    """Answers for any name, used behind all other sources where nothing is to be made: a name stands for itself."""

    name = "unresolved"

    def resolve(self, image: str) -> Base | None:
        """See ``bases.ImageSource``."""
        return Base(f"unresolved:{image}", ImageConfig())


@dataclass(slots=True)
class Tally:
    """Counts of environments as they are planned; what it holds grows with images and kinds of refusals alone."""

    environments: int = 0
    planned: int = 0
    keys: set[str] = field(default_factory=set)
    """Of what environments ask for, without what lies below or is read on the way."""
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Environments by class and instruction; the latter is empty where no line is at fault."""

    def add(self, keys: Collection[str]) -> None:
        """Count an environment whose images have these keys."""
        self.environments += 1
        self.planned += 1
        self.keys.update(keys)

    def refuse(self, conclusion: Conclusion) -> None:
        """Count an environment that gets no image."""
        self.environments += 1
        self.refusals[conclusion.reason, instruction_of(conclusion.headline)] += 1

    def refused(self) -> list[tuple[str, str, int]]:
        """Return class, instruction and count of the refusals, the most frequent first."""
        ordered = sorted(self.refusals.items(), key=lambda item: (-item[1], item[0]))
        return [(*what, count) for what, count in ordered]

    @property
    def asked(self) -> int:
        """How many environments have something to plan."""
        return self.environments - sum(count for (reason, _), count in self.refusals.items() if reason in NOT_OF_IMAGES)

    @property
    def share(self) -> float:
        """Per cent that are planned, of those that have something to plan."""
        return 100 * self.planned / self.asked if self.asked else 100.0


def instruction_of(headline: str) -> str:
    """Return the instruction that a headline names behind file and line, with its flag if that is named; or ""."""
    found = _INSTRUCTION.match(headline)
    return found[1] if found else ""
