"""What a run may spend on language models, counted over all of its processes, on any node, and over its resumptions.

Each process appends to a file of its own in the run folder, a line for each answer, and reads those of the others. So
no lock is needed, a process may be killed at any time, and nothing counts twice: a line is there or not. Answers that
are on their way when the budget is spent are still paid; so it is exceeded by what is asked for at a time, at most.

Jobs have run folders on their nodes. What is spent there is carried between these and the shared one (``carry``), a
line for the sum of what is new.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.llm.chat import BudgetSpentError, Usage

FOLDER = "budget"
"""In the run folder."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Sums over all answers of a run."""

    answers: int = 0
    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        """Return both."""
        return Spent(self.answers + other.answers, self.tokens + other.tokens, self.usd + other.usd)

    def __sub__(self, other: Spent) -> Spent:
        """Return what is more than in the other."""
        return Spent(self.answers - other.answers, self.tokens - other.tokens, self.usd - other.usd)


class Budget:
    """The budget of a run folder; safe to use from several threads."""

    def __init__(self, run: Path, tokens: int | None = None, usd: float | None = None) -> None:
        """``run``: the run folder, on storage that all of its processes see. None is no limit."""
        self.tokens = tokens
        self.usd = usd
        self._folder = run / FOLDER
        self._lock = threading.Lock()
        self._read: dict[str, tuple[int, Spent]] = {}
        """How far each file was read, and what stood in it."""
        self._name = f"{os.getpid()}-{secrets.token_hex(8)}.jsonl"
        self._handle: int | None = None
        self._whole = True
        """Whether our file ends with a whole line."""
        self._added = Spent()

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return self.tokens is not None or self.usd is not None

    def require(self) -> None:
        """Raise BudgetSpentError where nothing more may be asked for; OSError."""
        if not self.limited:
            return
        spent = self.spent()
        if self.tokens is not None and spent.tokens >= self.tokens:
            raise BudgetSpentError(f"the budget of {self.tokens} tokens is spent: {spent.tokens} were used")
        if self.usd is not None and spent.usd >= self.usd:
            raise BudgetSpentError(f"the budget of {self.usd:g} USD is spent: {spent.usd:.4f} USD were used")

    def spend(self, model: str, usage: Usage) -> None:
        """Count an answer. Raises OSError."""
        counts = {"prompt": usage.prompt, "completion": usage.completion, "usd": usage.usd}
        self._append({"model": model, **counts})

    def add(self, spent: Spent) -> None:
        """Count what was spent elsewhere. Raises OSError, and has not counted it then."""
        if not self._append({"answers": spent.answers, "tokens": spent.tokens, "usd": spent.usd}):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._added += spent

    def _append(self, counts: Mapping[str, object]) -> bool:
        """Return whether all of a line was written."""
        line = json.dumps(counts).encode() + b"\n"
        with self._lock:
            if self._handle is None:
                self._handle = self._opened()
            data = line if self._whole else b"\n" + line
            self._whole = os.write(self._handle, data) == len(data)
            return self._whole

    def spent(self) -> Spent:
        """Return what all processes of the run spent so far. Raises OSError."""
        with self._lock:
            return sum(self._by_file().values(), Spent())

    def carry(self, other: Budget) -> None:
        """Count here what others than ``other`` itself wrote into its folder, as far as it is new. Raises OSError.

        Both ways, with a ``Budget`` for each folder that does nothing else, no folder gets back what came from it.
        """
        with other._lock:
            found = other._by_file()
        news = sum((spent for name, spent in found.items() if name != other._name), Spent()) - self._added
        if news.answers:
            self.add(news)

    @property
    def files(self) -> int:
        """How many files were read."""
        return len(self._read)

    def _by_file(self) -> dict[str, Spent]:
        try:
            paths = [path for path in self._folder.iterdir() if path.suffix == ".jsonl"]
        except FileNotFoundError:
            return {}
        for path in paths:
            self._read[path.name] = self._go_on(path)
        return {name: spent for name, (_, spent) in self._read.items()}

    def _go_on(self, path: Path) -> tuple[int, Spent]:
        """Read what is new in a file; its last line may still be half."""
        at, spent = self._read.get(path.name, (0, Spent()))
        with path.open("rb") as file:
            file.seek(at)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                at += len(line)
                spent += _counted(line)
        return at, spent

    def _opened(self) -> int:
        self._folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(self._folder / self._name, flags, 0o644)

    def close(self) -> None:
        """Close our file; another answer would open it again."""
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None


def _counted(line: bytes) -> Spent:
    """A line that a full disk left half counts nothing."""
    try:
        values = json.loads(line)
        if "answers" in values:
            return Spent(int(values["answers"]), int(values["tokens"]), float(values["usd"]))
        return Spent(1, int(values["prompt"]) + int(values["completion"]), float(values["usd"] or 0))
    except (ValueError, KeyError, TypeError):
        return Spent()
