"""The commands of a run_test.sh of BugsInPy, as a list of what pytest or unittest is to run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Literal

from pytest_otval.sources.adapters.base import RefusalError

Runner = Literal["pytest", "unittest"]

_STARTS: Sequence[tuple[tuple[str, ...], Runner]] = (
    (("pytest",), "pytest"),
    (("py.test",), "pytest"),
    (("python", "-m", "pytest"), "pytest"),
    (("python3", "-m", "pytest"), "pytest"),
    (("tox",), "pytest"),
    (("python", "-m", "unittest"), "unittest"),
    (("python3", "-m", "unittest"), "unittest"),
)
"""tox runs the pytest of the project's settings; what is asked for stands in its arguments."""
_QUIET = ("-q", "-s", "-v")
"""Options that change nothing about what passes."""
_PYTEST = re.compile(r"(?!/|-)[^\s:\\]+\.py(?:::\w+)*(?:\[.*\])?")
_UNITTEST = re.compile(r"\w+(?:\.\w+)*")


def read_tests(script: str) -> tuple[Runner, list[str]]:
    """Return the runner and what it is given, each once, in order. Raises RefusalError for any other command."""
    runners: set[Runner] = set()
    selected: list[str] = []
    for line in re.split(r"[\n;]", script):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        runner, words = _command(line.strip())
        runners.add(runner)
        selected += words
    if not selected:
        raise RefusalError("no-tests", "run_test.sh runs no test")
    if len(runners) > 1:
        raise RefusalError("unsupported-tests", "run_test.sh runs pytest and unittest")
    return runners.pop(), list(dict.fromkeys(selected))


def _command(line: str) -> tuple[Runner, list[str]]:
    try:
        words = shlex.split(line)
    except ValueError:
        raise RefusalError("unsupported-tests", f"run_test.sh runs {line[:80]!r}, which cannot be read") from None
    found = next(((start, runner) for start, runner in _STARTS if tuple(words[: len(start)]) == start), None)
    if found is None:
        raise RefusalError("unsupported-tests", f"run_test.sh runs {line[:80]!r}, neither pytest nor unittest")
    start, runner = found
    wanted = _PYTEST if runner == "pytest" else _UNITTEST
    given = [word for word in words[len(start) :] if word not in _QUIET]
    for word in given:
        if not word.isprintable() or not wanted.fullmatch(word) or ".." in word.split("/"):
            raise RefusalError("unsupported-tests", f"run_test.sh gives {runner} {word[:80]!r}, which is no test")
    if not given:
        raise RefusalError("no-tests", f"run_test.sh runs {line[:80]!r} without a test")
    return runner, given
