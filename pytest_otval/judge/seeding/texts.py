"""What seeds look at and change: the texts of a task's first step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.checks.tree import scan
from pytest_otval.judge.blocks import readable_name
from pytest_otval.judge.model import Evidence
from pytest_otval.task.load import Task
from pytest_otval.task.named import paths_named
from pytest_otval.task.reading import NotReadableError, read_regular

MOST_BYTES = 256 * 1024
"""Of a file; a larger one is no text that a seed looks at."""
MOST_BYTES_TOGETHER = 8 * 1024 * 1024
MOST_PATHS = 100
"""Of an instruction that are looked for in all tests."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One known fault: what it changes, which criterion has to fail for it, and where."""

    seed: str
    criterion: str
    changes: Mapping[str, str]
    """The new text of each file of a task that it changes or adds, by path."""
    evidence: Evidence
    """Words that show it once it is there."""
    elsewhere: tuple[str, ...] = ()
    """Further documents whose words show it as well."""

    @property
    def documents(self) -> frozenset[str]:
        """Where it may be shown."""
        return frozenset((self.evidence.document, *self.elsewhere))


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of a task, by path in it with ``/``; paths that are empty or have no text are not there."""

    files: Mapping[str, str]
    taken: frozenset[str]
    """All paths of the task, of whatever kind."""
    instruction: str
    tests: str
    """The folder of its verifier."""
    solution: str
    """The reference solution's script."""
    environment: str = "environment"

    def text(self, path: str) -> str:
        """Return a file's text; empty where there is none."""
        return self.files.get(path, "")

    @property
    def asked(self) -> str:
        """The instruction."""
        return self.text(self.instruction)

    @property
    def script(self) -> str:
        """The path of the verifier's script."""
        return f"{self.tests}/test.sh"

    @property
    def dockerfile(self) -> str:
        """The path of the agent's Dockerfile."""
        return f"{self.environment}/Dockerfile"

    def below(self, folder: str) -> dict[str, str]:
        """Return the files below a folder."""
        return {path: text for path, text in self.files.items() if path.startswith(f"{folder}/")}

    def line_with(self, word: str, paths: Iterable[str]) -> Evidence | None:
        """Return the first line of these files that holds a word as a whole."""
        pattern = whole(word)
        for path in paths:
            for line in self.text(path).splitlines():
                if pattern.search(line):
                    return Evidence(readable_name(path), line.strip())
        return None

    def results(self) -> Iterator[tuple[str, Evidence]]:
        """Yield the files that instruction, solution and tests name, with the line of the tests that does."""
        for path in paths_named(self.asked)[:MOST_PATHS]:
            shown = self.line_with(path, self.below(self.tests))
            if shown and whole(path).search(self.asked) and self.line_with(path, (self.solution,)):
                yield path, shown


Put = Callable[[Texts], Fault | None]
"""Returns the fault; None where it does not apply. The same texts give the same fault."""


@dataclass(frozen=True, slots=True)
class Seed:
    """One kind of fault."""

    id: str
    criterion: str
    what: str
    """What it does, in words, and where it applies."""
    put: Put


def whole(word: str) -> re.Pattern[str]:
    """Return what finds a word that is no part of a longer one."""
    return re.compile(rf"(?<![\w/.-]){re.escape(word)}(?![\w/-])(?!\.\w)")


def read_texts(task: Task) -> Texts | None:
    """Return the texts of a task's first step; None for one whose task.toml cannot be read.

    Files that are no UTF-8, no regular files or too large are not there.
    """
    if not task.steps:
        return None
    step = task.steps[0]
    files: dict[str, str] = {}
    left = MOST_BYTES_TOGETHER
    entries = scan(task.path).entries
    for entry in entries.values():
        if entry.kind == "file" and entry.size <= min(left, MOST_BYTES):
            text = _text(task.path / entry.path)
            if text is not None:
                files[entry.path] = text
                left -= entry.size

    def within(path: Path) -> str:
        return path.relative_to(task.path).as_posix()

    return Texts(
        files, frozenset(entries), within(step.instruction), within(step.tests), f"{within(step.solution)}/solve.sh"
    )


def _text(path: Path) -> str | None:
    try:
        text = read_regular(path, MOST_BYTES).decode()
    except (NotReadableError, OSError, UnicodeDecodeError):
        return None
    return None if "\0" in text else text
