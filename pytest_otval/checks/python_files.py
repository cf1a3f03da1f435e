"""The Python test files of a verifier, and what else decides how they run."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from pytest_otval.checks.context import CheckContext, Source
from pytest_otval.checks.python_ast import parse_python
from pytest_otval.checks.python_versions import Version, declared
from pytest_otval.checks.verify_scripts import verifier_scripts
from pytest_otval.task.load import Step

_TEST_FILE = re.compile(r"test_.*\.py|.*_test\.py")
_MAX_BYTES = 512 * 1024
"""Bytes of Python that are looked at in a task; a megabyte takes seconds, and the longest known file has 0.3."""
_FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(\S+)", re.MULTILINE | re.IGNORECASE)
_INSTALLS = re.compile(
    r"Dockerfile|.*requirements.*\.txt|pyproject\.toml|setup\.(?:cfg|py)|environment\.ya?ml|.*\.sh|Pipfile"
)


@dataclass(frozen=True, slots=True)
class TestFile:
    """A Python test file that a verifier's pytest runs where it lies in /tests."""

    step: Step
    folder: str
    source: Source
    module: ast.Module | None
    """None where the running Python cannot parse it."""

    @property
    def path(self) -> str:
        """The file's path in the task."""
        return self.source.path


@lru_cache(maxsize=2)
def test_files(context: CheckContext) -> tuple[TestFile, ...]:
    """Return each test file once. Files that a script copies into a repository are left to its own conventions."""
    found: dict[str, TestFile] = {}
    left = _MAX_BYTES
    for step in context.steps:
        covered = _given_to_pytest(context, step)
        for folder in context.test_folders(step) if covered else ():
            for entry in context.tree.under(folder):
                place = f"/tests{entry.path.removeprefix(folder)}"
                by_name = _TEST_FILE.fullmatch(posixpath.basename(place)) is not None
                collected = place in covered or (by_name and any(place.startswith(f"{one}/") for one in covered))
                if collected and entry.path.endswith(".py") and entry.path not in found and entry.size <= left:
                    left -= entry.size
                    source = context.source(entry.path)
                    if source is not None and source.whole and source.is_utf8:
                        found[entry.path] = TestFile(step, folder, source, parse_python(source.text))
    return tuple(found.values())


def _given_to_pytest(context: CheckContext, step: Step) -> set[str]:
    """Return the files and folders of /tests that a step's scripts give to pytest."""
    folders = context.test_folders(step)
    found: set[str] = set()
    for script in verifier_scripts(context):
        if any(script.path.startswith(f"{folder}/") for folder in folders) and (done := script.done()) is not None:
            found.update(run.path for run in done.runs if run.how == "tests" and f"{run.path}/".startswith("/tests/"))
    return found


def parsed_files(context: CheckContext) -> Iterator[tuple[TestFile, ast.Module]]:
    """Yield the test files that could be parsed."""
    return ((file, file.module) for file in test_files(context) if file.module is not None)


def declared_python(context: CheckContext, step: Step) -> Version | None:
    """Return the Python that runs a step's tests, where the verifier's image and the scripts leave one alone."""
    config = context.task.config
    image = step.verifier_image
    folder = "environment" if image is None else context.relative(image.context)
    named = image.docker_image if image is not None else (config.environment.docker_image if config else None)
    dockerfile = context.source(f"{folder}/Dockerfile")
    scripts = [script.text for script in verifier_scripts(context)]
    if named:
        return declared(named, scripts)
    if dockerfile is None:
        return None
    bases = _FROM.findall(dockerfile.text)
    return declared(bases[-1], [dockerfile.text.replace(bases[-1], ""), *scripts]) if bases else None


def installing(context: CheckContext, file: TestFile) -> Iterator[Source]:
    """Yield what says which packages the verifier has."""
    folders = ("environment", file.folder)
    for folder in folders:
        for entry in context.tree.under(folder):
            name = posixpath.basename(entry.path)
            if posixpath.dirname(entry.path) == folder and _INSTALLS.fullmatch(name):
                source = context.source(entry.path)
                if source is not None and not source.is_binary:
                    yield source
    yield from (source for script in verifier_scripts(context) if (source := context.source(script.path)) is not None)


def conftests(context: CheckContext, file: TestFile) -> Iterator[Source]:
    """Yield the conftest.py files that lie beside a test file or above it, in any folder of its step's /tests."""
    inner = posixpath.dirname(file.path.removeprefix(file.folder)).strip("/")
    parts = inner.split("/") if inner else []
    for folder in context.test_folders(file.step):
        for depth in range(len(parts) + 1):
            source = context.source(posixpath.join(folder, *parts[:depth], "conftest.py"))
            if source is not None:
                yield source


def pytest_settings(context: CheckContext, file: TestFile) -> Iterator[Source]:
    """Yield what sets pytest's options for a test file."""
    names = ("pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini", "test.sh", "conftest.py")
    sources = (context.source(f"{file.folder}/{name}") for name in names)
    return (source for source in sources if source is not None)
