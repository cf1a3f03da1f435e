"""The lines that the reference solution's patches add, and where a text holds them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchedFile, PatchSet

from pytest_otval.checks import shell_ast
from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.shell import parse_shell

PATCHES = (".patch", ".diff")
MIN_LINES = 3
"""Lines with words or numbers that stand together; fewer are alike by chance."""
MIN_WORD_SIGNS = 3
"""Letters and digits of such a line: a bracket or ``fi`` says nothing."""
MIN_SIGNS = 60
"""Characters of these lines together."""
MAX_RUNS = 64
"""Of one task; the longest count."""
ENOUGH = 0.5
"""Share of what a patch adds to a file that another file does not hold by chance, as it may a licence or imports."""
_HUNK = re.compile(r"^@@ -\d", re.MULTILINE)
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Run:
    """Lines that a hunk adds, one after the other."""

    line: int
    """Where the first one stands in the task's file."""
    text: str
    """Without blanks around the lines, each with a line end in front of it and one behind the last."""
    after: str
    """The whole hunk as the patch leaves it, in the same form."""

    @property
    def needle(self) -> bytes:
        """The longest of the lines: what does not hold it holds nothing of this."""
        return max(self.text.split("\n"), key=len).encode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class GoldFile:
    """What a patch of the solution adds to one file."""

    patch: str
    """The task's file that has the patch."""
    path: str
    """The changed file, as the patch names it without ``a/`` and ``b/``."""
    runs: tuple[Run, ...]

    @property
    def tail(self) -> str:
        """The end of the file's path in an image, wherever the patch is applied."""
        return "/" + "/".join(self.path.split("/")[-2:])

    def is_at(self, path: str) -> bool:
        """Whether a path in an image, or in a repository, may be the changed file's."""
        return f"/{path}".endswith(self.tail)


class Text:
    """A text in the form in which lines are compared."""

    def __init__(self, raw: bytes) -> None:
        lines = raw.decode("utf-8", "replace").split("\n")
        if b"\n@@ " in raw:
            lines = [line.removeprefix("+") for line in lines]
        self._text = joined(lines)

    def line_of(self, text: str) -> int | None:
        """Return the 1-based line at which joined lines begin; None where they do not stand in the text."""
        position = self._text.find(text)
        return None if position < 0 else self._text.count("\n", 0, position + 1)


@dataclass(frozen=True, slots=True)
class Hit:
    """Lines of a gold file that a text holds."""

    gold: GoldFile
    run: Run
    line: int
    """Where they begin in the text."""
    share: float
    """Of all that the patch adds to the file, as far as it is long enough to be looked for."""
    applied: bool
    """The text is that of the changed file, and the hunk is applied to it."""


@dataclass(frozen=True)
class Gold:
    """All patches of a task's solutions."""

    files: tuple[GoldFile, ...] = ()

    @cached_property
    def _needles(self) -> tuple[bytes, ...]:
        return tuple(dict.fromkeys(run.needle for file in self.files for run in file.runs))

    @cached_property
    def tails(self) -> tuple[str, ...]:
        """The ends of the paths of the changed files."""
        return tuple(sorted({file.tail for file in self.files}))

    def changes(self, path: str) -> bool:
        """Whether a path may be that of a changed file."""
        return f"/{path}".endswith(self.tails)

    def hits(self, path: str, raw: bytes) -> list[Hit]:
        """Return what a file of this path and content holds: one hit for each gold file."""
        if not any(needle in raw for needle in self._needles):
            return []
        text = Text(raw)
        return [hit for file in self.files if (hit := _hit(file, path, text)) is not None]


def _hit(file: GoldFile, path: str, text: Text) -> Hit | None:
    own = file.is_at(path)
    # The changed file may have had such lines elsewhere: there the lines around them count, too.
    found = [(run, line) for run in file.runs if (line := text.line_of(run.after if own else run.text)) is not None]
    if not found:
        return None
    run, line = found[0]
    if own:
        line += run.after[: run.after.find(run.text)].count("\n")
    share = sum(len(run.text) for run, _ in found) / sum(len(run.text) for run in file.runs)
    return Hit(file, run, line, share, own)


def joined(lines: Sequence[str]) -> str:
    """Return lines in the form in which they are compared."""
    return "\n" + "\n".join([line.strip() for line in lines]) + "\n"


def gold_of(context: CheckContext) -> Gold:
    """Return what the patches in solution/, and those in here-documents of solve.sh, add."""
    files: list[GoldFile] = []
    for path, text, first in _patches(context):
        files += parsed(path, text, first)
    by_length = sorted((run for file in files for run in file.runs), key=lambda run: len(run.text), reverse=True)
    kept = set(by_length[:MAX_RUNS])
    shorter = (GoldFile(file.patch, file.path, tuple(run for run in file.runs if run in kept)) for file in files)
    return Gold(tuple(file for file in shorter if file.runs))


def _patches(context: CheckContext) -> Iterator[tuple[str, str, int]]:
    """Yield path and text of each patch, and the number of lines in front of it."""
    for folder in sorted({context.relative(step.solution) for step in context.steps}):
        for entry in context.tree.under(folder):
            if entry.kind == "file" and entry.path.endswith(PATCHES):
                source = context.source(entry.path)
                if source is not None and source.whole and not source.is_binary:
                    yield entry.path, source.text, 0
    for script in context.scripts():
        source = context.source(script.path) if script.role == "solve" else None
        if source is None or not source.whole or not _HUNK.search(source.text):
            continue
        for text in _here_documents(source.text):
            position = source.text.find(text)
            if position >= 0 and _HUNK.search(text):
                yield script.path, text, source.text.count("\n", 0, position)


def _here_documents(text: str) -> Iterator[str]:
    script = parse_shell(text)
    for simple in shell_ast.simple_commands(script.body) if script is not None else ():
        if simple.stdin is not None:
            yield "".join(part for part in simple.stdin.parts if isinstance(part, str))


def parsed(path: str, text: str, first: int = 0) -> list[GoldFile]:
    """Return what a patch adds to each file; nothing for a text that is no patch which could be applied.

    ``first`` is the number of lines in front of it in its file.
    """
    try:
        patch = PatchSet(text.replace("\r\n", "\n"))
    except (UnidiffParseError, ValueError):
        return []
    # What a patch moves was there before.
    removed = [line.value.strip() for file in patch for hunk in file for line in hunk if line.is_removed]
    moved = _Block(frozenset(removed), joined(removed))
    found = []
    for file in patch:
        runs = tuple(run for run in _runs(file, first) if not moved.has(run.text))
        if runs and not file.is_removed_file:
            found.append(GoldFile(path, posixpath.normpath(file.path.strip('"')), runs))
    return found


@dataclass(frozen=True, slots=True)
class _Block:
    lines: frozenset[str]
    text: str

    def has(self, text: str) -> bool:
        """Whether joined lines stand in it. Most are told by their first line."""
        return text.split("\n", 2)[1] in self.lines and text in self.text


def _runs(file: PatchedFile, first: int) -> Iterator[Run]:
    for hunk in file:
        after = joined([line.value for line in hunk if line.is_added or line.is_context])
        run: list[tuple[int, str]] = []
        for line in [*hunk, None]:
            if line is not None and line.is_added:
                run.append((line.diff_line_no, line.value.strip()))
                continue
            if line is not None and not line.is_context:
                continue  # one that is not in the changed file
            while run and _is_trivial(run[-1][1]):
                run.pop()
            while run and _is_trivial(run[0][1]):
                run.pop(0)
            telling = [text for _, text in run if not _is_trivial(text)]
            if len(telling) >= MIN_LINES and sum(map(len, telling)) >= MIN_SIGNS:
                yield Run(first + run[0][0], joined([text for _, text in run]), after)
            run = []


def _is_trivial(line: str) -> bool:
    """Whether a line says next to nothing: blank, a bracket, ``fi``."""
    return len(_WORD.findall(line)) < MIN_WORD_SIGNS
