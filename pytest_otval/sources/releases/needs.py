"""What a release and its tests need, as its source archive says it: requirements, licence, and what tests import."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution
from pathlib import PurePosixPath
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from pytest_otval.core import printable
from pytest_otval.sources.files import Files, SourceError, below
from pytest_otval.sources.releases.layout import is_loaded, project_table

PYTHON = "3.11"
"""Of the tasks' images, see the Dockerfile of datasets/pypi-releases."""
_SYSTEM = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": f"{PYTHON}.2",
    "python_version": PYTHON,
    "sys_platform": "linux",
}
"""What markers ask for; see https://packaging.python.org/en/latest/specifications/dependency-specifiers/"""
_OF_TESTS = ("test", "tests", "testing")
"""Extras and dependency groups with what a suite needs."""
_MAX_LICENCE = 80
_CLASSIFIER = "License :: OSI Approved :: "


class Metadata(Distribution):
    """Metadata of a source archive, in memory. Raises SourceError where it has none."""

    def __init__(self, files: Files) -> None:
        infos = [path for path in files if PurePosixPath(path).name == "PKG-INFO"]
        if not infos:
            raise SourceError("its source archive has no PKG-INFO")
        lists = [path for path in files if path.endswith(".egg-info/requires.txt")]
        chosen = [min(infos, key=lambda path: path.count("/")), *lists[:1]]
        self._texts = {PurePosixPath(path).name: files[path].content.decode("utf-8", "replace") for path in chosen}

    def read_text(self, filename: str) -> str | None:
        """See ``Distribution``."""
        return self._texts.get(filename)

    def locate_file(self, path: Any) -> Any:
        """See ``Distribution``: it has no files on disk."""
        raise FileNotFoundError(path)


def licence_of(metadata: Distribution) -> str:
    """Return the licence in the package's own words. Raises SourceError where it names none in one line."""
    values = metadata.metadata
    classifiers = [one.removeprefix(_CLASSIFIER) for one in values.get_all("Classifier") or () if _CLASSIFIER in one]
    words: str
    for words in (*(values.get_all("License-Expression") or ()), *(values.get_all("License") or ()), *classifiers):
        if words.strip() and len(words) <= _MAX_LICENCE and words.isprintable() and words != "UNKNOWN":
            return words.strip()
    raise SourceError("its metadata name no licence")


def requirements_of(metadata: Distribution, files: Files) -> list[Requirement]:
    """Return what the package and its tests say they need. Raises SourceError for what is not on a package index."""
    groups = project_table(files).get("dependency-groups", {})
    listed = [*(metadata.requires or ()), *(line for name in _OF_TESTS for line in _group(groups, name))]
    return [one for one in map(parsed_requirement, listed) if _applies(one)]


def parsed_requirement(line: str) -> Requirement:
    """Return a requirement that pip may be given. Raises SourceError."""
    try:
        found = Requirement(line)
    except InvalidRequirement:
        raise SourceError(f"{printable(line)!r} is no requirement") from None
    if found.url:
        raise SourceError(f"it needs {printable(line)}, which is no release on a package index")
    return found


def _group(groups: Any, name: str) -> list[str]:
    entries = groups.get(name) if isinstance(groups, dict) else None
    return [one for one in entries if isinstance(one, str)] if isinstance(entries, list) else []


def _applies(requirement: Requirement) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({**_SYSTEM, "extra": extra}) for extra in ("", *_OF_TESTS))


def undeclared(files: Files, tests: Sequence[str], modules: frozenset[str]) -> list[str]:
    """Return the modules, sorted, that files which pytest loads for ``tests`` import at once and nothing brings.

    ``modules`` are those that wheels bring. Imports that may fail, in a ``try`` or an ``if``, do not count.
    """
    parts = {part for path in files for part in PurePosixPath(path).with_suffix("").parts}
    known = parts | modules | sys.stdlib_module_names
    sources = (file.content for path, file in files.items() if below(path, tests) and is_loaded(path))
    return sorted({name for source in sources for name in _imported(source)} - known)


def _imported(source: bytes) -> Iterator[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]
