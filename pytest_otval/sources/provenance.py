"""provenance.jsonl: where each task of a dataset comes from, and what was done to it.

The first line is about the dataset, each other one about a task, in their order, or about a record that gave none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pytest_otval.core import printable
from pytest_otval.images.locks import write_whole
from pytest_otval.sources.adapters.base import Refused

PROVENANCE = "provenance.jsonl"
_VERSION = 2


@dataclass(frozen=True, slots=True)
class Made:
    """A task of the dataset."""

    name: str
    record: str
    """What the source calls it."""
    source: str
    """Digest of the task as its source has it."""
    digest: str
    patches: tuple[str, ...] = ()
    """Ids of those that changed it; the dataset's line has their classes of fault."""
    trouble: tuple[str, ...] = ()
    """A line for each patch that could not be applied."""


@dataclass(frozen=True, slots=True)
class Origin:
    """All that tasks are made from. Where it is the same, so are they."""

    recipe: str
    """Digest of patches and code."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """As dataset.toml has it."""
    content: str = ""
    """Digest of all that the source holds."""
    adapter: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the adapter."""
    version: str = ""
    """Of this program."""
    selection: Mapping[str, Any] = field(default_factory=dict)
    """Which of the source's tasks are taken."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Class of fault of each patch, by its id."""


@dataclass(slots=True)
class Prepared:
    """What a dataset came to."""

    origin: Origin
    tasks: list[Made] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    """Keys of its files."""
    made: int = 0
    """Parts that were not there already."""

    def add(self, part: str, made: bool, tasks: Iterable[Made], refused: Iterable[Refused]) -> None:
        """Add a part and what is in it; ``made``: it was not there already."""
        self.parts.append(part)
        self.made += made
        self.tasks += tasks
        self.refused += refused

    def applied(self) -> Counter[str]:
        """Return to how many tasks each patch was applied."""
        return Counter(patch for task in self.tasks for patch in task.patches)

    def trouble(self) -> list[str]:
        """Return what went wrong, a line each."""
        return [printable(f"{task.name}: {line}") for task in self.tasks for line in task.trouble]

    def write(self, folder: Path) -> None:
        """Write the file. Raises OSError."""
        head = {
            "v": _VERSION,
            **asdict(self.origin),
            "tasks": len(self.tasks),
            "refused": len(self.refused),
            "applied": dict(sorted(self.applied().items())),
            "parts": self.parts,
        }
        write_whole(folder / PROVENANCE, (_line(head) + lines_of([*self.tasks, *self.refused])).encode(), 0o644)


def lines_of(outcomes: Iterable[Made | Refused]) -> str:
    """Return tasks and refusals, a line each."""
    return "".join(_line(_values(one)) for one in outcomes)


def _values(one: Made | Refused) -> dict[str, Any]:
    if isinstance(one, Refused):
        return {"refused": one.name, "reason": one.reason, "why": one.why}
    return {name: value for name, value in asdict(one).items() if value}


def _line(values: Mapping[str, Any]) -> str:
    return json.dumps(values, separators=(",", ":")) + "\n"


def read_lines(lines: Sequence[str]) -> tuple[list[Made], list[Refused]]:
    """Return what ``lines_of`` wrote. Raises ValueError, TypeError, KeyError for anything else."""
    tasks: list[Made] = []
    refused: list[Refused] = []
    for line in lines:
        values = json.loads(line)
        if "refused" in values:
            refused.append(Refused(values["refused"], values["reason"], values["why"]))
        else:
            lists = {name: tuple(values[name]) for name in ("patches", "trouble") if name in values}
            tasks.append(Made(**{**values, **lists}))
    return tasks, refused


def read_origin(folder: Path) -> Origin | None:
    """Return what a dataset was made from; None where nothing says so."""
    try:
        with (folder / PROVENANCE).open(encoding="utf-8") as file:
            return _head(file.readline())[0]
    except (OSError, ValueError, TypeError, KeyError):
        return None


def read_prepared(folder: Path) -> Prepared | None:
    """Return what a dataset came to; None where nothing says so."""
    try:
        head, *lines = (folder / PROVENANCE).read_text(encoding="utf-8").splitlines()
        origin, parts = _head(head)
        tasks, refused = read_lines(lines)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return Prepared(origin, tasks, refused, parts)


def _head(line: str) -> tuple[Origin, list[str]]:
    values = json.loads(line)
    if values["v"] != _VERSION:
        raise ValueError
    return Origin(**{name: values[name] for name in Origin.__dataclass_fields__}), values["parts"]
