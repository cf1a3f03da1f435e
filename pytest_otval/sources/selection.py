"""Which of a source's tasks a command is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pytest_otval.core import OtvalUsageError, printable
from pytest_otval.sources.adapters.base import Refused
from pytest_otval.sources.parts import Raw, Tasks


@dataclass(frozen=True, slots=True)
class Selection:
    """Tasks by name and number; as it is made, all of them."""

    only: frozenset[str] | None = None
    """Their names, or what the source calls records that give no task."""
    limit: int | None = None
    """How many of these, in the order of the source."""

    @property
    def whole(self) -> bool:
        """Whether it leaves nothing out."""
        return self.only is None and self.limit is None

    def words(self) -> dict[str, Any]:
        """Return it as it can be compared, and written as JSON."""
        return {"only": None if self.only is None else sorted(self.only), "limit": self.limit}

    def of(self, tasks: Tasks) -> Iterator[Raw | Refused]:
        """Yield those that are selected, and look at no more of the source than it takes.

        Raises OtvalUsageError at the end of a source that lacks one of the names.
        """
        missing = set(self.only or ())
        left = self.limit
        stream = iter(tasks)
        while left != 0 and (self.only is None or missing):
            task = next(stream, None)
            if task is None:
                break
            if self.only is None or task.name in missing:
                missing.discard(task.name)
                left = None if left is None else left - 1
                yield task
        if missing and left != 0:
            raise OtvalUsageError(f"the source has no task {printable(min(missing))!r}")


ALL = Selection()
