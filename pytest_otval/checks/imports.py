"""Names that Python tests take from modules: what a module of the agent's must define for them to run."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_otval.checks.py_paths import known_names, text_of
from pytest_otval.checks.python_ast import dotted, nodes, parse_python, walk
from pytest_otval.checks.reads import MAX_PYTHON

_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+(\w+)[ \t]+import\b|import[ \t]+(\w+))", re.MULTILINE)
_BY_FILE = re.compile(r"(?<!\w)(\w+)\.py[\"']")


@dataclass(frozen=True, slots=True)
class Taken:
    """A name that a test file takes from a module."""

    module: str
    name: str
    line: int


def imported_modules(text: str) -> set[str]:
    """Return the modules a Python file may import, by their first part; cheap, and may hold too many."""
    found = {first or second for first, second in _IMPORT.findall(text)}
    if "spec_from_file_location" in text or "import_module" in text:
        found.update(_BY_FILE.findall(text))
    return found


def surely_imported(module: ast.Module) -> Iterator[str]:
    """Yield the modules that a parsed Python file imports, by their first part."""
    for node in nodes(module):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def taken_names(text: str) -> tuple[Taken, ...]:
    """Return the names that a Python file surely takes from modules; none where it cannot be parsed.

    Left out is what a handler of exceptions bears, and what ``hasattr`` or ``getattr`` asks for.
    """
    module = parse_python(text) if len(text) <= MAX_PYTHON else None
    try:
        return () if module is None else tuple(_taken(module))
    except RecursionError:
        return ()


def _taken(module: ast.Module) -> Iterator[Taken]:
    aliases = _aliases(module)
    asked = _asked(module)
    borne = _borne(module)
    for node in nodes(module):
        if id(node) in borne:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and not node.level and "." not in node.module:
            names = [alias.name for alias in node.names if alias.name != "*"]
            yield from (Taken(node.module, name, node.lineno) for name in names if name not in asked)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and isinstance(node.ctx, ast.Load):
            home = aliases.get(node.value.id)
            if home is not None and node.attr not in asked and not node.attr.startswith("__"):
                yield Taken(home, node.attr, node.lineno)


def _aliases(module: ast.Module) -> Mapping[str, str]:
    """Return the names that stand for one module in the whole file: imported, or loaded from a file."""
    known = known_names(module)
    bound: dict[str, set[str | None]] = {}
    specs: dict[str, str] = {}
    for node in nodes(module):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    bound.setdefault(alias.asname or alias.name.partition(".")[0], set()).add(alias.name)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func, args=args)):
                called = dotted(func).rpartition(".")[2]
                home: str | None = None
                if called == "spec_from_file_location" and len(args) > 1:
                    path = text_of(args[1], known) or ""
                    specs[name] = posixpath.splitext(posixpath.basename(path))[0]
                elif called == "module_from_spec" and args and isinstance(args[0], ast.Name):
                    home = specs.get(args[0].id)
                elif called == "import_module" and args:
                    home = text_of(args[0], known)
                bound.setdefault(name, set()).add(home)
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                bound.setdefault(name, set())
    stored = {node.id for node in nodes(module) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    homes = {name: one for name, ones in bound.items() if len(ones) == 1 and (one := next(iter(ones)))}
    return {name: home for name, home in homes.items() if name not in stored or home in specs.values()}


def _asked(module: ast.Module) -> set[str]:
    """Return the texts that are an argument of a call: ``hasattr(module, "name")`` and its like."""
    calls = (node for node in nodes(module) if isinstance(node, ast.Call) and len(node.args) > 1)
    return {
        arg.value
        for call in calls
        if dotted(call.func).rpartition(".")[2] in ("hasattr", "getattr", "setattr", "delattr")
        for arg in call.args
        if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
    }


def _borne(module: ast.Module) -> set[int]:
    """Return the ids of the nodes inside a ``try`` that has handlers."""
    tries = [node for node in nodes(module) if isinstance(node, ast.Try) and node.handlers]
    return {id(inner) for node in tries for statement in node.body for inner in walk(statement)}
