"""What checks look at: the task, its tree, and the text of its files, each read once and safely."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol

from pytest_otval.checks.tree import Entry, Tree, scan
from pytest_otval.task.load import Step, Task
from pytest_otval.task.reading import NotReadableError, read_start

MAX_TEXT = 1024 * 1024
"""Bytes of a file that checks read; what is longer is no script anybody wrote."""

BOM = b"\xef\xbb\xbf"


class CheckSettings(Protocol):
    """What checks ask of a dataset's settings."""

    @property
    def oracle(self) -> str:
        """``required``, or ``none`` where the dataset has no reference solutions."""


@dataclass(frozen=True)
class Source:
    """The content of one regular file."""

    path: str
    raw: bytes
    whole: bool
    """False where the file is longer than what was read."""

    @cached_property
    def text(self) -> str:
        """The text without a byte order mark; bytes that are not UTF-8 become U+FFFD."""
        return self.raw.removeprefix(BOM).decode("utf-8", "replace")

    @cached_property
    def is_utf8(self) -> bool:
        """Whether all of it is UTF-8."""
        try:
            self.raw.decode("utf-8")
        except UnicodeDecodeError as error:
            return not self.whole and error.start > len(self.raw) - 4
        return True

    @cached_property
    def is_binary(self) -> bool:
        """Whether it holds a NUL byte, as text never does."""
        return b"\0" in self.raw

    @cached_property
    def shebang(self) -> str:
        """The program line of a script without ``#!``, or an empty text."""
        first = self.raw.removeprefix(BOM).split(b"\n", 1)[0]
        return first[2:].decode("utf-8", "replace").strip() if first.startswith(b"#!") else ""


@dataclass(frozen=True, slots=True)
class Script:
    """A script that a trial starts by itself."""

    role: Literal["test", "solve", "setup"]
    path: str
    step: Step


class CheckContext:
    """One task under check. Files are read on demand and kept."""

    def __init__(self, task: Task, settings: CheckSettings | None = None) -> None:
        self.task = task
        self.settings = settings
        self._sources: dict[str, Source | None] = {}

    @cached_property
    def tree(self) -> Tree:
        """All entries of the task folder."""
        return scan(self.task.path)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The task's steps; none where task.toml cannot be read."""
        return self.task.steps

    @cached_property
    def windows(self) -> bool:
        """Whether the task is for Windows, where .bat files take the place of shell scripts."""
        return self.task.config is not None and self.task.config.environment.os == "windows"

    def relative(self, path: Path) -> str:
        """Return a path of the task model relative to the task folder."""
        # By their texts: checks ask this more often than anything else, and pathlib takes its time.
        text, root = str(path), f"{self.task.path}/"
        return text.removeprefix(root) if text.startswith(root) else path.relative_to(self.task.path).as_posix()

    def file(self, path: str) -> Entry | None:
        """Return the regular file a path leads to inside the task, if there is one."""
        entry = self.tree.resolve(path)
        return entry if entry is not None and entry.kind == "file" else None

    def source(self, path: str) -> Source | None:
        """Return a file's content, or None where the path leads to no readable regular file of the task."""
        if path not in self._sources:
            entry = self.file(path)
            self._sources[path] = None if entry is None else _read(self.task.path, entry.path, path)
        return self._sources[path]

    def glance(self, entry: Entry) -> bytes | None:
        """Return the bytes of a file as far as checks read, without keeping them; None where it is unreadable."""
        if entry.path in self._sources:
            source = self._sources[entry.path]
        else:
            source = _read(self.task.path, entry.path, entry.path)
        return None if source is None else source.raw

    def sources(self, folder: str) -> Iterator[Source]:
        """Yield the content of each regular file below a folder."""
        for entry in self.tree.under(folder):
            if entry.kind == "file" and (source := self.source(entry.path)) is not None:
                yield source

    def digest(self, entry: Entry) -> str | None:
        """Return the sha256 of a small regular file, or None where it is larger than checks read."""
        source = self.source(entry.path)
        return hashlib.sha256(source.raw).hexdigest() if source is not None and source.whole else None

    def scripts(self) -> tuple[Script, ...]:
        """Return each script that a trial starts, once, where it exists and is no .bat file."""
        return self._scripts

    @cached_property
    def _scripts(self) -> tuple[Script, ...]:
        found: dict[str, Script] = {}
        for step in self.steps:
            for role, path in self._script_paths(step):
                if path not in found and self.file(path) is not None:
                    found[path] = Script(role, path, step)
        return tuple(found.values())

    def _script_paths(self, step: Step) -> Iterator[tuple[Literal["test", "solve", "setup"], str]]:
        if self.windows:
            return
        yield "test", self.test_script(step)
        yield "solve", posixpath.join(self.relative(step.solution), "solve.sh")
        yield "setup", posixpath.join(self.relative(step.tests), "setup.sh")
        yield "setup", "setup_files/setup.sh"
        if step.workdir is not None:
            yield "setup", posixpath.join(self.relative(step.workdir), "setup.sh")

    def test_script(self, step: Step) -> str:
        """Return the path of a step's test script: its own, else the one of the task's tests/, which lie below it."""
        name = "test.bat" if self.windows else "test.sh"
        paths = [posixpath.join(folder, name) for folder in self.test_folders(step)]
        return next((path for path in paths if self.file(path) is not None), paths[0])

    def test_folders(self, step: Step) -> tuple[str, ...]:
        """Return the folders whose files lie at /tests in a step; those of the first cover the others."""
        shared = () if step.shared_tests is None else (self.relative(step.shared_tests),)
        return (self.relative(step.tests), *shared)

    @cached_property
    def test_files(self) -> tuple[Entry, ...]:
        """The regular files that lie at /tests in any step, each once."""
        folders = dict.fromkeys(folder for step in self.steps for folder in self.test_folders(step))
        found = {entry.path: entry for folder in folders for entry in self.tree.under(folder) if entry.kind == "file"}
        return tuple(found.values())


def _read(root: Path, real: str, path: str) -> Source | None:
    try:
        raw = read_start(f"{root}/{real}", MAX_TEXT + 1)
    except (OSError, NotReadableError):
        return None
    return Source(path, raw[:MAX_TEXT], len(raw) <= MAX_TEXT)
