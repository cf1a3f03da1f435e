"""The task of a pair of releases: restore in the old release what the new release's suite asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_otval.core import OtvalUsageError
from pytest_otval.sources.fetch import Archive, read_fetched
from pytest_otval.sources.files import File, Files, SourceError, below, read_sdist, text, under
from pytest_otval.sources.releases.instruction import describe_tests, list_cases, list_tests
from pytest_otval.sources.releases.pairs import Pair

TEMPLATE = "template"
"""Folder of the dataset that has them."""
TEMPLATES = ("task.toml.in", "instruction.md", "Dockerfile", "test.sh", "grade.py", "solve.sh")
"""task.toml under another name, since a folder that holds a task.toml is a task."""

_CONFIGURATIONS = ("pyproject.toml",)
"""Files that pytest is told to take its configuration from, where the suite needs one."""
_OWN_CONFIGURATION = "pytest.ini"
"""An empty one for the other suites: without one, pytest would look for it above the tree."""


def read_templates(folder: Path) -> dict[str, str]:
    """Return the texts that tasks are made from, by file name; ``@NAME@`` stands for what differs.

    Raises OtvalUsageError where one cannot be read.
    """
    try:
        return {name: (folder / name).read_text(encoding="utf-8") for name in TEMPLATES}
    except OSError as error:
        raise OtvalUsageError(f"{error.filename}: {error.strerror}: restore it from the repository") from error


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that a task is made from."""

    pair: Pair
    pass_to_pass: Sequence[str]
    wheels: Sequence[Archive]
    fetched: Path
    """The folder of fetched files."""
    templates: Mapping[str, str]


def task_files(inputs: Inputs) -> Files:
    """Return the files of the task. Equal inputs give equal files.

    Raises SourceError where an archive cannot be read or lacks a listed path, and where the codes do not differ.
    """
    pair = inputs.pair
    old, new = (
        read_sdist(release.file, read_fetched(pair.sdist(release), inputs.fetched)) for release in (pair.old, pair.new)
    )
    wheels = {one.file: File(read_fetched(one, inputs.fetched)) for one in inputs.wheels}
    tests = {path: file for path, file in new.items() if below(path, pair.tests)}
    _check_paths(pair, old, new)
    changed, gone = _changes(pair, old, new)
    if not changed:
        raise SourceError("no file of the new code is new or differs")
    words = {**_words(pair, tests), "REMOVE": _removals(gone)}
    filled = {name: text(fill(content, words)) for name, content in inputs.templates.items()}
    ids = {"fail_to_pass": pair.graded_fail_to_pass, "pass_to_pass": list(inputs.pass_to_pass)}
    return {
        "task.toml": filled["task.toml.in"],
        "instruction.md": filled["instruction.md"],
        "environment/Dockerfile": filled["Dockerfile"],
        **under("environment/app", {path: file for path, file in old.items() if not below(path, pair.tests)}),
        **under("environment/wheels", wheels),
        "solution/solve.sh": replace(filled["solve.sh"], executable=True),
        **under("solution/files", changed),
        "tests/test.sh": replace(filled["test.sh"], executable=True),
        "tests/grade.py": filled["grade.py"],
        "tests/ids.json": text(json.dumps(ids, indent=1) + "\n"),
        **under("tests/suite", _suite(pair, tests, new)),
    }


def _check_paths(pair: Pair, old: Files, new: Files) -> None:
    for files, release, paths in (
        (old, pair.old, pair.code),
        (new, pair.new, (*pair.code, *pair.tests, *pair.suite)),
    ):
        for path in paths:
            if not any(below(file, (path,)) for file in files):
                raise SourceError(f"{release.file} has no {path}, which its pair lists")


def _suite(pair: Pair, tests: Files, new: Files) -> Files:
    suite = {**tests, **{path: file for path, file in new.items() if below(path, pair.suite)}}
    if _configuration(pair) == _OWN_CONFIGURATION:
        suite[_OWN_CONFIGURATION] = text("[pytest]\n")
    return suite


def _configuration(pair: Pair) -> str:
    return next((name for name in _CONFIGURATIONS if name in pair.suite), _OWN_CONFIGURATION)


def _code(pair: Pair, files: Files) -> Files:
    return {path: file for path, file in files.items() if below(path, pair.code) and not below(path, pair.tests)}


def _changes(pair: Pair, old: Files, new: Files) -> tuple[Files, list[str]]:
    """Return the files of the code that are new or differ, and the paths of those that are gone."""
    before, after = _code(pair, old), _code(pair, new)
    changed = {path: file for path, file in after.items() if before.get(path) != file}
    return changed, sorted(set(before) - set(after))


def _removals(paths: Sequence[str]) -> str:
    return "".join(f"rm -f '/app/{_quotable(path)}'\n" for path in paths)


def _quotable(path: str) -> str:
    if "'" in path or not path.isprintable():
        raise SourceError(f"{path!r}: a name that solve.sh cannot hold")
    return path


def _words(pair: Pair, tests: Files) -> dict[str, str]:
    """Return what the placeholders of task.toml, test.sh and instruction.md stand for."""
    ids = pair.graded_fail_to_pass
    facts = list(describe_tests(ids, {path: file.content for path, file in tests.items()}, _import_name(pair)))
    cases = list_cases(ids)
    return {
        "NAME": pair.name,
        "PACKAGE": pair.package,
        "OLD": pair.old.version,
        "NEW": pair.new.version,
        "LICENCE": pair.licence,
        "CODE": " ".join(pair.code),
        "CODE_LIST": ", ".join(f"`/app/{path}`" for path in pair.code),
        "TESTS": " ".join(pair.tests),
        "FACTS": list_tests(facts),
        "CASES": f"\nThe failing cases of parametrised tests:\n\n{cases}\n" if cases else "",
        "PYTHONPATH": f"PYTHONPATH={pair.source_root} " if pair.source_root else "",
        "PYTHONPATH_HINT": f" with `PYTHONPATH=/app/{pair.source_root}`" if pair.source_root else "",
        "CONFIG": _configuration(pair),
        "ARGUMENTS": " \\\n    ".join([*(f"--deselect={path}" for path in pair.deselect), *pair.tests]),
    }


def _import_name(pair: Pair) -> str:
    """The package's import name is its last path of code: folder or single module."""
    return pair.code[-1].rpartition("/")[2].removesuffix(".py")


def fill(template: str, words: Mapping[str, str]) -> str:
    """Return the template with each ``@NAME@`` replaced, ending in one newline. Raises KeyError on an unknown name."""
    return re.sub(r"@([A-Z_]+)@", lambda found: words[found[1]], template).rstrip("\n") + "\n"
