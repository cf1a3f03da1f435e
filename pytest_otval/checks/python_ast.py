"""Python test files as syntax trees: their tests, and the names that expressions spell."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SIGNS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop)


Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")


def unless_too_deep(find: Callable[Arguments, Iterator[Found]]) -> Callable[Arguments, Iterator[Found]]:
    """Make a search end, instead of raising RecursionError, where an expression is nested deeper than Python goes."""

    @wraps(find)
    def search(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Iterator[Found]:
        with suppress(RecursionError):
            yield from find(*args, **kwargs)

    return search


@lru_cache(maxsize=64)
def parse_python(text: str) -> ast.Module | None:
    """Return the syntax tree of a Python file, or None where it cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes and asserts on tuples
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def dotted(node: ast.expr) -> str:
    """Return ``a.b.c`` for a chain of names, ``().c`` in front of what is none, else an empty text."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        names.append(node.id)
    elif names:
        names.append("()")
    return ".".join(reversed(names))


@dataclass(frozen=True, slots=True)
class TestCase:
    """A test function or method, by pytest's default names."""

    function: Function
    owner: ast.ClassDef | None

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.name


def test_cases(module: ast.Module) -> Iterator[TestCase]:
    """Yield the tests of a module."""
    for node in module.body:
        if isinstance(node, Function) and node.name.startswith("test"):
            yield TestCase(node, None)
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, Function) and inner.name.startswith("test"):
                    yield TestCase(inner, node)


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements and those inside them, in the order of the text; far fewer nodes than a whole walk."""
    pending = list(reversed(body))
    while pending:
        node = pending.pop()
        yield node
        inner: list[ast.stmt] = []
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):
            for one in getattr(node, part, ()):
                inner.extend([one] if isinstance(one, ast.stmt) else one.body)
        pending.extend(reversed(inner))


@dataclass(frozen=True, slots=True)
class Index:
    """Statements of a module by kind, at any depth."""

    functions: tuple[Function, ...]
    asserts: tuple[ast.Assert, ...]


@lru_cache(maxsize=64)
def index(module: ast.Module) -> Index:
    """Return the functions, methods and assertions of a module."""
    found = list(statements(module.body))
    return Index(
        tuple(one for one in found if isinstance(one, Function)),
        tuple(one for one in found if isinstance(one, ast.Assert)),
    )


def walk(node: ast.AST) -> list[ast.AST]:
    """Return a node and all below it in the order of ``ast.walk``, but for signs and contexts; several times faster."""
    found = [node]
    for one in found:
        for name in one._fields:
            value = getattr(one, name, None)
            if isinstance(value, list):
                found += [inner for inner in value if isinstance(inner, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, _SIGNS):
                found.append(value)
    return found


@lru_cache(maxsize=64)
def nodes(module: ast.Module) -> Sequence[ast.AST]:
    """Return all nodes of a module, as ``walk`` does."""
    return walk(module)


def forget_modules() -> None:
    """Forget what was parsed: trees are many objects, which each full collection of garbage would look at."""
    for cached in (parse_python, index, nodes):
        cached.cache_clear()


def calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield every call below a node."""
    found = nodes(node) if isinstance(node, ast.Module) else walk(node)
    return (one for one in found if isinstance(one, ast.Call))


def marks(node: Function | ast.ClassDef | ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the pytest marks of a test, class or module, each with its expression, as ``skipif``."""
    listed: list[ast.expr] = list(node.decorator_list) if not isinstance(node, ast.Module) else []
    for inner in node.body if not isinstance(node, Function) else ():
        if isinstance(inner, ast.Assign) and any(dotted(target) == "pytestmark" for target in inner.targets):
            listed.extend(inner.value.elts if isinstance(inner.value, ast.List | ast.Tuple) else [inner.value])
    for one in listed:
        name = dotted(one.func if isinstance(one, ast.Call) else one)
        if name.startswith(("pytest.mark.", "mark.")):
            yield name.rsplit(".", 1)[1], one


def keyword(call: ast.expr, name: str) -> ast.expr | None:
    """Return the value of a call's keyword argument, if it has it."""
    found = call.keywords if isinstance(call, ast.Call) else []
    return next((one.value for one in found if one.arg == name), None)


def is_constant(node: ast.expr | None, value: object) -> bool:
    """Whether an expression is a constant of that value."""
    return isinstance(node, ast.Constant) and node.value is value
