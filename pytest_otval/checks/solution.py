"""Files that reference solutions use: those of the tests and the reward, and those that are not there."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from pytest_otval.checks import shell_ast as ast
from pytest_otval.checks.context import CheckContext, Script, Source
from pytest_otval.checks.image_files import known_image
from pytest_otval.checks.registry import Place, check
from pytest_otval.checks.said import line_at
from pytest_otval.checks.scripts import is_shell
from pytest_otval.checks.shell import ShellScript, known_text, parse_shell
from pytest_otval.core import Severity

_COMMENT = re.compile(r"^[ \t]*#(?!!).*$", re.MULTILINE)
_SCRIPT_ENDS = (".sh", ".py", ".bash", ".js", ".rb", ".pl")


@dataclass(frozen=True, slots=True)
class Solution:
    """A step's solve.sh."""

    script: Script
    source: Source
    folder: str

    @property
    def parsed(self) -> ShellScript | None:
        """The script, where a shell runs it and we can read it."""
        return parse_shell(self.source.text) if is_shell(self.source) else None


@lru_cache(maxsize=2)
def solutions(context: CheckContext) -> tuple[Solution, ...]:
    """Return each solve.sh of a task that can be read."""
    found = ((script, context.source(script.path)) for script in context.scripts() if script.role == "solve")
    return tuple(
        Solution(script, source, context.relative(script.step.solution))
        for script, source in found
        if source is not None and source.whole and not source.is_binary
    )


def _code(source: Source) -> str:
    """Return a script without the lines that are comments, every line in its place."""
    return _COMMENT.sub("", source.text)


def _scripts(context: CheckContext) -> Iterator[tuple[Solution, Source]]:
    """Yield each program of the solution: solve.sh, and the scripts beside it that it names."""
    for solution in solutions(context):
        yield solution, solution.source
        for entry in context.tree.under(solution.folder):
            name = posixpath.basename(entry.path)
            if entry.kind == "file" and name.endswith(_SCRIPT_ENDS) and name in solution.source.text:
                source = context.source(entry.path)
                if source is not None and source.path != solution.source.path and source.whole:
                    yield solution, source


_TESTS_FILE = re.compile(r"(?<![\w.\-/$}~*])/tests/[\w.\-/]*\w")
_ASKED = r"(?:(?:\[\[?|\btest|&&|\|\|) (?:! )?-[edfrsx] |exists\(|isfile\(|isdir\()"
"""What asks whether a file is there, in front of its path."""


@check(
    "solution-reads-tests",
    severity=Severity.ERROR,
    family="solution",
    explains="/tests is not there while the solution runs, and an agent never has it: such a solution proves nothing.",
    fix="compute the answer from what an agent has, or put the file into solution/",
)
def reads_tests(context: CheckContext) -> Iterator[Place]:
    """Look for files of /tests in the solution; a warning where the image may bring them, or they are asked for."""
    filled = None
    for solution, source in _scripts(context):
        code = _code(source) if "/tests/" in source.text else ""
        for found in islice(_TESTS_FILE.finditer(code), _MAX_USES):
            if _said_or_asked(code, found):
                continue
            if filled is None:
                filled = known_image(context, "environment").may_fill("/tests")
            there = _in_tests(context, solution, found[0])
            severity = Severity.ERROR if there and not filled else Severity.WARNING
            yield Place(source.path, f"the solution uses {found[0]}", line_at(code, found.start()), severity)
            break


_SAID = re.compile(r"\s*(?:(?:echo|printf)\b(?!.*\$\()|print\(\s*f?[\"'][^\"']*$)")


def _said_or_asked(code: str, found: re.Match[str]) -> bool:
    """Whether a path is only printed, or asked for."""
    before = _line_before(code, found.start())
    after = code[found.end() : found.end() + 20]
    asked = re.search(rf"{_ASKED}[\"']?$", before) or re.match(r"[\"']\)\.(?:exists|is_file|is_dir)\(", after)
    return bool(asked or _SAID.match(before))


def _in_tests(context: CheckContext, solution: Solution, path: str) -> bool:
    """Whether a path of the container is a file of the task's tests, so that it can only mean that one."""
    below = path.removeprefix("/tests/")
    return any(context.file(f"{folder}/{below}") for folder in context.test_folders(solution.script.step))


_REWARD = re.compile(r"/logs/verifier/reward\.(?:txt|json)")


@check(
    "solution-writes-reward",
    severity=Severity.ERROR,
    family="solution",
    explains="The verifier alone gives the reward; a solution that writes it would pass whatever the tests say.",
    fix="take it out of the solution",
)
def writes_reward(context: CheckContext) -> Iterator[Place]:
    """Look for a redirect of solve.sh to the reward, and, as a warning, for other mentions of it."""
    for solution, source in _scripts(context):
        code = _code(source) if "reward." in source.text else ""
        found = _REWARD.search(code)
        if found is None:
            continue
        script = solution.parsed if source is solution.source else None
        written = [one for one in ast.simple_commands(script.body) if _to_reward(one)] if script is not None else []
        if written:
            yield Place(source.path, "writes the reward", written[0].line)
        else:
            yield Place(source.path, "mentions the reward", line_at(code, found.start()), Severity.WARNING)


def _to_reward(simple: ast.Simple) -> bool:
    return any(_REWARD.fullmatch(known_text(redirect.target)) for redirect in simple.redirects)


_OWN_FILE = re.compile(r"(?<![\w.\-/$}~*])/solution/([\w.\-]+(?:/[\w.\-]+)*)(?![\w*{$/\[?\-])")


@check(
    "solution-file-missing",
    severity=Severity.ERROR,
    family="solution",
    explains="/solution holds the files of solution/ and nothing else: what is not there cannot be used.",
    fix="add the file to solution/",
)
def file_missing(context: CheckContext) -> Iterator[Place]:
    """Look for files of /solution that solve.sh uses, that solution/ does not have and no script makes."""
    for solution in solutions(context):
        code = _code(solution.source)
        told: set[str] = set()
        for found in _OWN_FILE.finditer(code) if "/solution/" in code else ():
            below = found[1].rstrip(".")
            if below in told or context.tree.resolve(f"{solution.folder}/{below}") is not None:
                continue
            told.add(below)
            if len(told) > _MAX_USES:
                break
            pattern = rf"/solution/{re.escape(below)}(?![\w.\-])"
            uses = [one.start() for one in islice(re.finditer(pattern, code), _MAX_USES)]
            if all(_only_read(code, start) for start in uses) and not _mentions_elsewhere(context, solution, below):
                message = f"uses /solution/{below}, which is not in {solution.folder}/"
                yield Place(solution.source.path, message, line_at(code, found.start()))


_READ_BEFORE = re.compile(
    r"(?:^|[|&;(\n{]|\bthen|\bdo|\belse)[ \t]*"
    r"(?:(?:sudo|exec|source|\.|bash|sh|python3?|node|cat|patch|git apply)\b[^\n;|&>]*)?[ \t]*(?:<[ \t]*)?[\"']?$"
)
"""What may stand in front of a file that is surely read: a program that reads, ``<``, or nothing where it is called."""


_MAX_LINE = 400
_MAX_USES = 20


def _line_before(code: str, start: int) -> str:
    """Return what stands in front of a place on its line, as far as it is of a usual length."""
    return code[max(start - _MAX_LINE, code.rfind("\n", 0, start) + 1) : start]


_BORNE = re.compile(rf"{_ASKED}|\|\|\s*true|2>/dev/null")


def _only_read(code: str, start: int) -> bool:
    """Whether a file is surely read at a place of the code, and its absence not borne."""
    before = "\n" + _line_before(code, start)
    line = before + code[start : start + _MAX_LINE].partition("\n")[0]
    reads = _READ_BEFORE.search(before) or re.search(r"\scp (?:-\w+ )*[\"']?$", before)
    return reads is not None and _BORNE.search(line) is None


def _mentions_elsewhere(context: CheckContext, solution: Solution, below: str) -> bool:
    """Whether another file of the solution or the image mentions the name, and so may make the file."""
    name = posixpath.basename(below)
    folders = (solution.folder, "environment", "setup_files")
    others = (one for folder in folders for one in context.sources(folder) if one.path != solution.source.path)
    return known_image(context, "environment").may_fill("/solution") or any(name in one.text for one in others)
