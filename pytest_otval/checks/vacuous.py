"""Tests that cannot fail."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.python_ast import dotted, parse_python
from pytest_otval.checks.registry import Place, check
from pytest_otval.core import Severity
from pytest_otval.task.load import Step

_TEST_FILE = re.compile(r"test_.*\.py|.*_test\.py")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class TestFunction:
    """A test function of a Python file, by pytest's default names."""

    name: str
    line: int
    empty: bool
    """Its body holds nothing that can fail."""
    skipped: bool
    """Always skipped."""


@lru_cache(maxsize=256)
def test_functions(text: str) -> tuple[TestFunction, ...] | None:
    """Return the test functions of a Python file, or None where it cannot be parsed."""
    module = parse_python(text)
    if module is None:
        return None
    skipped = _module_skipped(module)
    return tuple(
        TestFunction(function.name, function.lineno, _cannot_fail(function.body), skipped or outer or _skips(function))
        for function, outer in _tests(module)
    )


def _tests(module: ast.Module) -> Iterator[tuple[_Function, bool]]:
    """Yield the test functions and methods, each with whether its class is always skipped."""
    for node in module.body:
        if isinstance(node, _Function) and node.name.startswith("test"):
            yield node, False
        elif isinstance(node, ast.ClassDef):
            outer = _skips(node)
            for inner in node.body:
                if isinstance(inner, _Function) and inner.name.startswith("test"):
                    yield inner, outer


def _skips(node: _Function | ast.ClassDef) -> bool:
    if any(_is_skip(decorator) for decorator in node.decorator_list):
        return True
    first = [one for one in node.body if not _is_docstring(one)][:1]
    return any(isinstance(one, ast.Expr) and _is_call_of(one.value, "pytest.skip") for one in first)


def _module_skipped(module: ast.Module) -> bool:
    for node in module.body:
        if isinstance(node, ast.Expr) and _is_call_of(node.value, "pytest.skip"):
            return True
        names = (
            [target.id for target in node.targets if isinstance(target, ast.Name)]
            if isinstance(node, ast.Assign)
            else []
        )
        if "pytestmark" in names and isinstance(node, ast.Assign):
            marks = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
            if any(_is_skip(mark) for mark in marks):
                return True
    return False


def _is_skip(node: ast.expr) -> bool:
    plain = node.func if isinstance(node, ast.Call) else node
    return dotted(plain) in ("pytest.mark.skip", "mark.skip", "unittest.skip", "skip")


def _is_call_of(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) == name


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _cannot_fail(body: list[ast.stmt]) -> bool:
    """Whether statements hold nothing but constants, ``pass``, ``return`` and ``print`` of constants."""
    return all(_harmless(node) for node in body)


def _harmless(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Return(value=None) | ast.Return(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=args, keywords=[])):
            return all(isinstance(arg, ast.Constant) for arg in args)
        case ast.Assert(test=ast.Constant(value=value)):
            return bool(value)
        case ast.Assign(targets=[ast.Name()], value=ast.Constant()):
            return True
    return False


def _test_files(context: CheckContext, step: Step) -> Iterator[tuple[str, tuple[TestFunction, ...]]]:
    for folder in context.test_folders(step):
        for source in context.sources(folder):
            if _TEST_FILE.fullmatch(posixpath.basename(source.path)) and source.whole:
                functions = test_functions(source.text)
                if functions is not None:
                    yield source.path, functions


@check(
    "vacuous-tests",
    severity=Severity.WARNING,
    family="vacuous",
    explains="A test without anything that can fail passes whatever the agent did.",
    fix="assert what the instruction asks for",
)
def empty(context: CheckContext) -> Iterator[Place]:
    """Look for tests that cannot fail; an error where pytest decides the reward and no other test is there."""
    yield from _useless(context, "empty", "cannot fail: nothing in it is checked")


_MANY_TESTS = 10
"""Where so many count, a skipped one is but one that an upstream project left out."""


@check(
    "vacuous-skipped",
    severity=Severity.WARNING,
    family="vacuous",
    explains="pytest ends with status 0 where every test is skipped, so nothing is tested and all is well.",
    fix="remove the skip mark, or the test",
)
def skipped(context: CheckContext) -> Iterator[Place]:
    """Look for tests that are always skipped; an error where pytest decides the reward and no other test is there."""
    yield from _useless(context, "skipped", "is always skipped")


def _useless(context: CheckContext, fault: str, message: str) -> Iterator[Place]:
    seen: set[str] = set()
    for step in context.steps:
        files = dict(_test_files(context, step))
        tests = [one for functions in files.values() for one in functions]
        all_useless = bool(tests) and all(one.empty or one.skipped for one in tests) and _pytest_alone(context, step)
        severity = Severity.ERROR if all_useless else Severity.WARNING
        if fault == "skipped" and sum(not (one.empty or one.skipped) for one in tests) >= _MANY_TESTS:
            severity = Severity.INFO
        for path, functions in files.items():
            if path not in seen:
                seen.add(path)
                found = [
                    one for one in functions if (one.skipped if fault == "skipped" else one.empty and not one.skipped)
                ]
                yield from (Place(path, f"{one.name} {message}", one.line, severity) for one in found)


def _pytest_alone(context: CheckContext, step: Step) -> bool:
    """Whether the step's test script runs pytest and no other file of its tests can run anything."""
    script = context.source(context.test_script(step))
    if script is None or "pytest" not in script.text:
        return False
    names = {
        posixpath.basename(entry.path)
        for folder in context.test_folders(step)
        for entry in context.tree.under(folder)
        if entry.kind == "file"
    }
    passive = (".txt", ".json", ".md", ".csv", ".toml", ".ini", ".cfg", ".yaml", ".yml")
    return all(
        _TEST_FILE.fullmatch(name) or name in ("test.sh", "__init__.py", "Dockerfile") or name.endswith(passive)
        for name in names
    )


@check(
    "vacuous-no-tests",
    severity=Severity.WARNING,
    family="vacuous",
    explains="pytest ends with status 5 where it finds no test, so no solution can pass.",
    fix="add tests, or remove the file",
)
def no_tests(context: CheckContext) -> Iterator[Place]:
    """Look for empty test files."""
    for entry in context.test_files:
        if entry.size == 0 and _TEST_FILE.fullmatch(posixpath.basename(entry.path)):
            yield Place(entry.path, "an empty test file")
