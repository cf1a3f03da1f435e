"""Assertions of Python tests: is there one, can it fail, and what does it look at."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pytest_otval.checks.python_ast import (
    Function,
    TestCase,
    calls,
    dotted,
    index,
    is_constant,
    keyword,
    nodes,
    statements,
    walk,
)

_ASKS = re.compile(
    r"assert|fail|raise|warns|expect|verif|check|ensure|must|should|valid|compare|require|exit|abort|equal|snapshot"
    r"|regression|confirm|match",
    re.IGNORECASE,
)
"""Names of calls that fail where something is not as it should be."""
_EXISTS = re.compile(r"(?:.*\.)?(?:exists|isfile|isdir|islink|is_file|is_dir|is_symlink|access)")
_BROAD = ("Exception", "BaseException", "AssertionError", "builtins.Exception")
_QUIET = re.compile(r"print|(?:.*\.)?(?:debug|info|warning|error|exception|log|warn|write)")


@dataclass
class Asserts:
    """What the functions of one module can fail on."""

    module: ast.Module
    siblings: frozenset[str]
    """Modules beside the tests: what is imported from them may assert."""
    known: dict[str, bool] = field(default_factory=dict)

    @cached_property
    def locals(self) -> Mapping[str, Function]:
        """The module's functions and methods by name."""
        return {one.name: one for one in index(self.module).functions}

    @cached_property
    def imported(self) -> frozenset[str]:
        """The names that come from the modules beside it."""
        return frozenset(_imported(self.module, self.siblings))

    def can_fail(self, function: Function) -> bool:
        """Whether a function holds an assertion, or calls one that does or may."""
        if any(isinstance(node, ast.Assert | ast.Raise) for node in statements(function.body)):
            return True
        name = function.name
        if name not in self.known:
            self.known[name] = False  # of functions that call each other, the one that asserts decides
            given = (self.locals[one.arg] for one in function.args.args if one.arg in self.locals)
            self.known[name] = any(map(self._fails, calls(function))) or any(map(self.can_fail, given))
        return self.known[name]

    def _fails(self, call: ast.Call) -> bool:
        called = dotted(call.func)
        last = called.rsplit(".", 1)[-1]
        if _ASKS.search(last) or called.split(".")[0] in self.imported or is_constant(keyword(call, "check"), True):
            return True
        passed = (arg.id for arg in call.args if isinstance(arg, ast.Name))
        return any(self.can_fail(self.locals[one]) for one in (last, *passed) if one in self.locals)


def _imported(module: ast.Module, siblings: frozenset[str]) -> Iterator[str]:
    for node in nodes(module):
        if isinstance(node, ast.ImportFrom):
            inside = node.level > 0 or (node.module or "").split(".")[0] in siblings
            yield from (one.asname or one.name for one in node.names if inside or one.name in siblings)
        elif isinstance(node, ast.Import):
            found = (one for one in node.names if one.name.split(".")[0] in siblings)
            yield from (one.asname or one.name.split(".")[0] for one in found)


def returns_comparison(function: Function) -> bool:
    """Whether a function hands back the answer of a comparison."""
    answers = (node.value for node in walk(function) if isinstance(node, ast.Return))
    return any(isinstance(one, ast.Compare | ast.BoolOp) for one in answers)


def always_true(module: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Yield assertions that cannot fail: the line, why, and whether something else was surely meant.

    ``assert True`` is none: whoever writes it knows that.
    """
    for node in index(module).asserts:
        match node.test:
            case ast.Tuple(elts=[_, *_]):
                yield node.lineno, "a tuple is always true: the brackets hold the condition and its message", True
            case ast.BoolOp(op=ast.Or(), values=values) if (last := _truth(values[1:])) is not None:
                yield node.lineno, f"`... or {last!r}` is always true", not isinstance(last, bool)
            case ast.Constant(value=str() as text) if text:
                yield node.lineno, "a text is always true", True
            case ast.Compare(left=ast.Call(func=ast.Name(id="len")), ops=[ast.GtE()], comparators=[right]) if (
                isinstance(right, ast.Constant) and right.value == 0
            ):
                yield node.lineno, "a length is never below 0", False


def _truth(values: list[ast.expr]) -> object | None:
    return next((one.value for one in values if isinstance(one, ast.Constant) and one.value), None)


def swallowed(case: TestCase) -> Iterator[int]:
    """Yield the lines of assertions whose failure an ``except`` in the same test hides.

    Attempts in a loop, and handlers that do more than speak, are left alone: there something else may decide.
    """
    pending = list(case.function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Try) and not node.orelse and not _leaves(node.body) and _hides(node.handlers):
            first = next(filter(_asserts, statements(node.body)), None)
            if first is not None:
                yield first.lineno
        elif isinstance(node, ast.If | ast.With | ast.AsyncWith | ast.Try):
            pending.extend(node.body)
            pending.extend(getattr(node, "orelse", ()))
            pending.extend(getattr(node, "finalbody", ()))


def _asserts(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant)


def _leaves(body: list[ast.stmt]) -> bool:
    return any(isinstance(one, ast.Return | ast.Break | ast.Continue) for one in statements(body))


def _hides(handlers: list[ast.ExceptHandler]) -> bool:
    """Whether an AssertionError meets a handler that says nothing but on a terminal."""
    for handler in handlers:
        caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        if any(one is None or dotted(one) in _BROAD for one in caught):
            return all(_speaks(one) for one in handler.body)
    return False


def _speaks(node: ast.stmt) -> bool:
    if isinstance(node, ast.Pass):
        return True
    if not isinstance(node, ast.Expr):
        return False
    quiet = isinstance(node.value, ast.Call) and _QUIET.fullmatch(dotted(node.value.func)) is not None
    return quiet or isinstance(node.value, ast.Constant)


def existence_only(function: Function) -> bool:
    """Whether a test asserts that files are there, and nothing else."""
    body = list(statements(function.body))
    asserted = [node.test for node in body if isinstance(node, ast.Assert)]
    if not asserted or any(isinstance(node, ast.Raise) for node in body) or not all(map(_is_existence, asserted)):
        return False
    return not any(_ASKS.search(dotted(call.func).rsplit(".", 1)[-1]) for call in calls(function))


def _is_existence(node: ast.expr) -> bool:
    match node:
        case ast.BoolOp(values=values):
            return all(_is_existence(one) for one in values)
        case ast.Call(func=function):
            return _EXISTS.fullmatch(dotted(function)) is not None
    return False
