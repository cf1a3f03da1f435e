"""Python tests that pytest passes over: skipped while they run, expected to fail, or without a parameter."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pytest_otval.checks.python_ast import (
    Function,
    calls,
    dotted,
    index,
    is_constant,
    keyword,
    marks,
    nodes,
    test_cases,
    unless_too_deep,
    walk,
)

_SKIPS = re.compile(r"(?:pytest\.)?(?:skip|importorskip)|self\.skipTest|(?:unittest\.)?SkipTest")
_OF_THE_PLATFORM = re.compile(r"\b(?:sys|platform|os)\.(?:platform|name|version_info|system|machine)\b|\bwin32\b")


def _bearers(module: ast.Module) -> Iterator[Function | ast.ClassDef | ast.Module]:
    """Yield what marks of tests stand on."""
    yield module
    seen: set[str] = set()
    for case in test_cases(module):
        if case.owner is not None and case.owner.name not in seen:
            seen.add(case.owner.name)
            yield case.owner
        yield case.function


def xfails(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the lines of xfail marks under which a test passes whatever it finds, with the name of what bears them."""
    for bearer in _bearers(module):
        for name, mark in marks(bearer):
            if name == "xfail" and not is_constant(keyword(mark, "strict"), True):
                yield mark.lineno, getattr(bearer, "name", "the whole file")
    for call in calls(module):
        if dotted(call.func) == "pytest.xfail":
            yield call.lineno, "a test"


@unless_too_deep
def skips(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the lines on which a test is skipped by what only a run tells, with the condition.

    Skips by platform or Python version are decided with the image, and those without a condition are
    ``vacuous-skipped``.
    """
    for bearer in _bearers(module):
        for name, mark in marks(bearer):
            if name == "skipif" and isinstance(mark, ast.Call) and mark.args and not _by_platform(mark.args[0]):
                yield mark.lineno, f"skipped if {_short(mark.args[0])}"
    for function in index(module).functions:
        yield from _skipping(function.body, "", top=True)
    for node in module.body:
        called = node.value if isinstance(node, ast.Assign | ast.Expr) else None
        if isinstance(called, ast.Call) and dotted(called.func) == "pytest.importorskip":
            yield node.lineno, "skipped if a module is missing"


def _skipping(body: list[ast.stmt], why: str, *, top: bool) -> Iterator[tuple[int, str]]:
    """Yield the skips below some statements of a test; ``why`` is the condition around them."""
    for node in body:
        if isinstance(node, Function | ast.ClassDef):
            continue
        if isinstance(node, ast.If):
            if not _by_platform(node.test):
                yield from _skipping(node.body, f"skipped if {_short(node.test)}", top=False)
                yield from _skipping(node.orelse, f"skipped unless {_short(node.test)}", top=False)
        elif isinstance(node, ast.Try):
            yield from _skipping(node.body, why, top=False)
            for handler in node.handlers:
                yield from _skipping(handler.body, "skipped on an exception", top=False)
        elif isinstance(node, ast.For | ast.While | ast.With):
            yield from _skipping(node.body, why or "skipped in a loop", top=False)
        elif isinstance(node, ast.Expr | ast.Raise | ast.Assign):
            for call in calls(node):
                name = dotted(call.func)
                if name.endswith("importorskip"):
                    yield call.lineno, "skipped if a module is missing"
                elif _SKIPS.fullmatch(name) and not top:
                    yield call.lineno, why or "skipped while it runs"


def _by_platform(condition: ast.expr) -> bool:
    return _OF_THE_PLATFORM.search(ast.unparse(condition)) is not None


def _short(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else text[:57] + "..."


def empty_parameters(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield parametrize marks over nothing, with the name of the test that is never run."""
    empty = set(_empty_names(module))
    for bearer in _bearers(module):
        for name, mark in marks(bearer):
            values = _values_of(mark) if name == "parametrize" else None
            literal = isinstance(values, ast.List | ast.Tuple) and not values.elts
            if values is not None and (literal or dotted(values) in empty):
                yield mark.lineno, getattr(bearer, "name", "every test of the file")


def _values_of(mark: ast.expr) -> ast.expr | None:
    named = keyword(mark, "argvalues")
    return mark.args[1] if named is None and isinstance(mark, ast.Call) and len(mark.args) > 1 else named


def _empty_names(module: ast.Module) -> Iterator[str]:
    """Yield the names that are an empty list or tuple from first to last: nothing else mentions them but marks."""
    for node in module.body:
        value = node.value if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(node, ast.Assign) and isinstance(value, ast.List | ast.Tuple) and not value.elts:
            name = dotted(node.targets[0])
            in_marks = sum(
                isinstance(one, ast.Name) and one.id == name
                for bearer in _bearers(module)
                for _, mark in marks(bearer)
                for one in walk(mark)
            )
            if sum(isinstance(one, ast.Name) and one.id == name for one in nodes(module)) == in_marks + 1:
                yield name
