"""Python tests whose answer depends on the machine or the moment they run on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from pytest_otval.checks.python_ast import calls, dotted, index, statements, unless_too_deep, walk

Kind = Literal["date", "host"]

_CLOCK = re.compile(r"(?:time\.)?(?:time|perf_counter|monotonic|process_time)(?:_ns)?")
READS = {
    "date": re.compile(r"(?:datetime\.)?(?:datetime|date)\.(?:now|today|utcnow)|time\.(?:localtime|gmtime|strftime)"),
    "host": re.compile(
        r"(?:socket\.)?(?:gethostname|getfqdn)|platform\.(?:node|uname)|(?:getpass\.)?getuser"
        r"|os\.(?:uname|getuid|geteuid|getlogin|getgid)"
    ),
}
"""Calls that read today's date, and what names this machine or its user."""
MENTIONS = {
    "date": re.compile(r"\.now\(|\.today\(|\.utcnow\(|time\.(?:localtime|gmtime|strftime)"),
    "host": re.compile(r"gethostname|getfqdn|platform\.|getuser|os\.uname|get(?:e?uid|login|gid)"),
}
"""What a text that holds such a call holds."""
MEASURES = re.compile(r"\b(?:perf_counter|monotonic|process_time|time\.time|from time import)")
_RANDOM = re.compile(r"(?:random|np\.random|numpy\.random)\.(?!seed|Random|SystemRandom|default_rng|RandomState)\w+")
_SEED = re.compile(r"(?:.*\.)?(?:seed|manual_seed|Random|RandomState|default_rng|set_seed|set_random_seed)")
_NAMING = re.compile(r"(?:random\.)?(?:getrandbits|token_hex)")


@unless_too_deep
def time_limits(module: ast.Module) -> Iterator[tuple[int, float]]:
    """Yield assertions that something took less than a constant: the line, and the limit in seconds."""
    for function in index(module).functions:
        names = _Clocks()
        for node in statements(function.body):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target, unit = dotted(node.targets[0]), _elapsed(node.value, names)
                if isinstance(node.value, ast.Call) and _is_clock(node.value):
                    names.started.add(target)
                elif unit is not None:
                    names.elapsed[target] = unit
            elif isinstance(node, ast.Assert):
                for compare in _compares(node):
                    yield from ((node.lineno, limit) for limit in _limits(compare, names))


def _compares(node: ast.Assert) -> Iterator[ast.Compare]:
    return (one for one in walk(node.test) if isinstance(one, ast.Compare))


@dataclass(slots=True)
class _Clocks:
    """What the names of one function hold."""

    started: set[str] = field(default_factory=set)
    """Readings of a clock."""
    elapsed: dict[str, float] = field(default_factory=dict)
    """Differences of two, with how many of their units make a second."""


def _limits(compare: ast.Compare, names: _Clocks) -> Iterator[float]:
    sides = [compare.left, *compare.comparators]
    for left, operator, right in zip(sides, compare.ops, sides[1:], strict=False):
        low, high = (left, right) if isinstance(operator, ast.Lt | ast.LtE) else (right, left)
        unit = _elapsed(low, names) if isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE) else None
        limit = high.value if isinstance(high, ast.Constant) else None
        if unit is not None and isinstance(limit, int | float):
            yield limit / unit


def _elapsed(node: ast.expr, names: _Clocks) -> float | None:
    """Return how many units of an expression make a second, where it is the difference of two readings of a clock."""
    match node:
        case ast.Name(id=name):
            return names.elapsed.get(name)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            read = all(
                dotted(side) in names.started or (isinstance(side, ast.Call) and _is_clock(side))
                for side in (left, right)
            )
            return (1e9 if "_ns" in ast.unparse(node) else 1.0) if read else None
        case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant(value=int() | float() as factor)):
            unit = _elapsed(left, names)
            return None if unit is None else unit * factor
        case ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=int() | float() as factor)) if factor:
            unit = _elapsed(left, names)
            return None if unit is None else unit / factor
    return None


def _is_clock(call: ast.Call) -> bool:
    name = dotted(call.func)
    return _CLOCK.fullmatch(name) is not None and (name != "time" or not call.args)


@unless_too_deep
def fixed(module: ast.Module, kind: Kind) -> Iterator[int]:
    """Yield the lines of assertions that compare what ``READS`` reads with a constant."""
    for function in index(module).functions:
        names: set[str] = set()
        for node in statements(function.body):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and _holds(node.value, READS[kind], names):
                names.add(dotted(node.targets[0]))
            elif isinstance(node, ast.Assert):
                for compare in _compares(node):
                    sides = [compare.left, *compare.comparators]
                    read = any(_holds(side, READS[kind], names) for side in sides)
                    if read and len(sides) == 2 and any(_is_fixed(side) for side in sides):
                        yield node.lineno


def _holds(node: ast.expr, source: re.Pattern[str], names: set[str]) -> bool:
    """Whether an expression is a reading of a source, or a part or text of one."""
    match node:
        case ast.Name(id=name):
            return name in names
        case ast.Attribute(value=inner) | ast.Subscript(value=inner):
            return _holds(inner, source, names)
        case ast.Call(func=function, args=args):
            if source.fullmatch(dotted(function)):
                return True
            inner_holds = isinstance(function, ast.Attribute) and _holds(function.value, source, names)
            return inner_holds or (dotted(function) in ("str", "int") and any(_holds(a, source, names) for a in args))
    return False


def _is_fixed(node: ast.expr) -> bool:
    """Whether an expression is a number, a text, or a date of constants."""
    if isinstance(node, ast.Call):
        named = re.fullmatch(r"(?:datetime\.)?(?:datetime|date)", dotted(node.func)) is not None
        return named and bool(node.args) and all(isinstance(arg, ast.Constant) for arg in node.args)
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float | str)


def unseeded(module: ast.Module) -> int | None:
    """Return the first line of a test that asks a global random generator that nothing seeds, or None."""
    asked: list[int] = []
    for call in calls(module):
        name = dotted(call.func)
        if _SEED.fullmatch(name):
            return None
        if _RANDOM.fullmatch(name) and not _NAMING.fullmatch(name):
            asked.append(call.lineno)
    return min(asked, default=None)
