"""Which line of a task's scripts asks the network for what was heard: told from their syntax trees."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.checks.python_ast import forget_modules, nodes, parse_python
from pytest_otval.checks.python_fetch import python_fetches
from pytest_otval.checks.shell import parse_shell
from pytest_otval.checks.shell_commands import unwrapped
from pytest_otval.checks.verify_fetch import fetches
from pytest_otval.sandbox.base import Phase
from pytest_otval.task.load import Step, Task
from pytest_otval.task.reading import NotReadableError, is_folder, read_regular

_MAX_BYTES = 1024 * 1024
"""Of all scripts of a phase together."""
_MAX_FILES = 200
_SHELL = (".sh", ".bash")


@dataclass(frozen=True, slots=True)
class _Line:
    """A command of a shell script, or a text or call of a Python file."""

    number: int
    text: str
    """Its words."""
    fetches: bool = False
    """Whether it asks another machine for something."""


def place_of(task: Task, phase: Phase, names: Sequence[str]) -> tuple[str, int | None]:
    """Return file and line that speak of the first name that any does, else that run a program which fetches.

    ``names`` are those that were looked up. Comments and docstrings count for nothing.
    """
    scripts = [(path, list(_lines(path, text))) for path, text in _texts(task, phase)]
    forget_modules()
    wanted = [re.compile(rf"(?<![\w.-]){re.escape(name.rstrip('.'))}(?![\w-])", re.IGNORECASE) for name in names]
    for pattern in wanted:
        for path, lines in scripts:
            for line in lines:
                if pattern.search(line.text):
                    return str(path.relative_to(task.path)), line.number
    for path, lines in scripts:
        first = min((line.number for line in lines if line.fetches), default=None)
        if first is not None:
            return str(path.relative_to(task.path)), first
    return ("tests/test.sh" if phase == "verifier" else "solution/solve.sh"), None


def _texts(task: Task, phase: Phase) -> Iterator[tuple[Path, str]]:
    """Yield the scripts of a phase: in each folder shell before Python."""
    left = _MAX_BYTES
    for folder in dict.fromkeys(folder for step in task.steps for folder in _folders(step, phase)):
        scripts = [path for path in sorted(folder.iterdir()) if path.suffix in (*_SHELL, ".py")]
        for path in sorted(scripts, key=lambda path: path.suffix not in _SHELL)[:_MAX_FILES]:
            with suppress(NotReadableError, OSError):
                data = read_regular(path, left)
                left -= len(data)
                yield path, data.decode(errors="replace")


def _folders(step: Step, phase: Phase) -> list[Path]:
    found = [step.tests, step.shared_tests] if phase == "verifier" else [step.solution]
    return [folder for folder in found if folder is not None and is_folder(folder)]


def _lines(path: Path, text: str) -> Iterator[_Line]:
    return _of_python(text) if path.suffix == ".py" else _of_shell(text)


def _of_shell(text: str) -> Iterator[_Line]:
    script = parse_shell(text)
    for command in script.commands if script is not None else ():
        words = (command.name, *command.args)
        yield _Line(command.line, "\n".join((*words, command.stdin)), fetches(words) or _fetches_unknown(words))


def _fetches_unknown(words: Sequence[str]) -> bool:
    """Whether a command fetches from an address that is not known: here something was asked, after all."""
    name, *args = unwrapped(words) or [""]
    return posixpath.basename(name) in ("curl", "wget") and any("\0" in arg for arg in args)


def _of_python(text: str) -> Iterator[_Line]:
    module = parse_python(text)
    if module is None:
        return
    said = {id(one.value) for one in nodes(module) if isinstance(one, ast.Expr)}
    for one in nodes(module):
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and id(one) not in said:
            yield _Line(one.lineno, one.value)
    for number, asked in python_fetches(module):
        yield _Line(number, asked, fetches=True)
