"""Where the source archive of a release has its code and its tests, as far as names tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import tomli

from pytest_otval.sources.files import Files, SourceError, below

_ROOTS = ("src", "lib", "")
"""Where projects have their code, below the archive's top folder."""
_TESTS = ("tests", "test", "testing")
_NO_CODE = frozenset(
    (*_TESTS, "benchmarks", "conftest", "doc", "docs", "examples", "scripts", "setup", "tasks", "tools")
)
PROJECT_TABLE = "pyproject.toml"
_CONFTEST = "conftest.py"


@dataclass(frozen=True, slots=True)
class Layout:
    """See ``Pair`` for what these are."""

    source_root: str | None
    code: tuple[str, ...]
    tests: tuple[str, ...]
    suite: tuple[str, ...]


def find_layout(project: str, files: Files) -> Layout:
    """Return where a project has what. Raises SourceError where that cannot be told."""
    root, code = _code(project, files)
    suite = []
    if "pytest" in project_table(files).get("tool", {}):
        suite.append(PROJECT_TABLE)
    if _CONFTEST in files:
        suite.append(_CONFTEST)
    return Layout(root or None, code, _tests(files, code), tuple(suite))


def project_table(files: Files) -> dict[str, Any]:
    """Return what pyproject.toml says; nothing where it cannot be read."""
    try:
        return tomli.loads(files[PROJECT_TABLE].content.decode())
    except (KeyError, UnicodeDecodeError, tomli.TOMLDecodeError):
        return {}


def _code(project: str, files: Files) -> tuple[str, tuple[str, ...]]:
    """Return the folder that has the code, and packages and modules in it, the one called as the project last."""
    own = project.lower().replace("-", "_")
    likely = {own, own.removeprefix("python_"), own.removesuffix("_python")}
    said = {
        line.lower()
        for path, file in files.items()
        if path.endswith(".egg-info/top_level.txt")
        for line in file.content.decode("utf-8", "replace").split()
    }
    for root in _ROOTS:
        there = {name: path for name, path in _importable(files, root).items() if name.lower() not in _NO_CODE}
        chosen = [name for name in there if name.lower() in (said or likely)]
        if not chosen and root and len(there) == 1:
            chosen = list(there)
        if chosen:
            return root, tuple(there[name] for name in sorted(chosen, key=lambda name: (name.lower() in likely, name)))
    raise SourceError("its code is not found: no package or module is called as the project")


def _importable(files: Files, root: str) -> dict[str, str]:
    """Return the paths of packages and modules right below a folder, by name."""
    prefix = f"{root}/" if root else ""
    found = {}
    for path in files:
        name, *rest = path.removeprefix(prefix).split("/")
        if not path.startswith(prefix):
            continue
        if rest == ["__init__.py"]:
            found[name] = prefix + name
        elif not rest and name.endswith(".py"):
            found[name.removesuffix(".py")] = path
    return found


def _tests(files: Files, code: Sequence[str]) -> tuple[str, ...]:
    for place in (*_TESTS, *(f"{path}/{name}" for path in code for name in _TESTS)):
        if any(below(path, (place,)) and _is_test(path) for path in files):
            return (place,)
    alone = tuple(sorted(path for path in files if "/" not in path and _is_test(path)))
    if not alone:
        raise SourceError("its source archive has no tests")
    return alone


def is_loaded(path: str) -> bool:
    """Tell whether pytest loads a file by itself, by its name."""
    return _is_test(path) or PurePosixPath(path).name == _CONFTEST


def _is_test(path: str) -> bool:
    name = PurePosixPath(path).name
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))
