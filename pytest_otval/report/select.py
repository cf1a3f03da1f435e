"""The language of ``--select``: an expression over the fields of a result.

Python parses it; what is not on a short list of node types is refused, and the rest is walked by hand. Nothing is
evaluated by Python, no attribute of any object is reached, and there are no regular expressions, which can be made to
run for ever. ``docs/reports.md`` is its manual.
"""

from __future__ import annotations

import ast
import io
import operator
import tokenize
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Literal

from pytest_otval.core import REASONS, OtvalUsageError, Verdict
from pytest_otval.report.results import Row
from pytest_otval.report.text import one_line

MOST_LETTERS, MOST_NODES, MOST_DEPTH = 1000, 200, 20

Kind = Literal["text", "number", "truth"]
Value = str | float | bool | None

_FIELDS: Mapping[str, tuple[Kind, Callable[[Row], Value]]] = {
    "id": ("text", lambda row: row.id),
    "dataset": ("text", lambda row: row.dataset),
    "task": ("text", lambda row: row.task),
    "stage": ("text", lambda row: row.stage),
    "verdict": ("text", lambda row: row.verdict),
    "class": ("text", lambda row: row.reason),
    "reason": ("text", lambda row: row.reason),
    "headline": ("text", lambda row: row.headline),
    "score": ("number", lambda row: row.score),
    "seconds": ("number", lambda row: row.seconds),
    "image": ("text", lambda row: row.image),
    "image.key": ("text", lambda row: row.image_key),
    "stricter": ("text", lambda row: row.stricter),
    "known_bad": ("text", lambda row: row.known_bad),
    "unexpected": ("truth", lambda row: row.unexpected),
    "attempts.passed": ("number", lambda row: row.attempts[0] if row.attempts else None),
    "attempts.count": ("number", lambda row: row.attempts[1] if row.attempts else None),
    "attempts.low": ("number", lambda row: row.low),
    "attempts.high": ("number", lambda row: row.high),
    "attacks.paid": ("number", lambda row: sum(cell == "paid" for _, cell in row.attacks) if row.attacks else None),
    "retries": ("number", lambda row: row.retries),
    "warnings": ("number", lambda row: row.warnings),
    "scope": ("text", lambda row: row.scope),
    "isolation": ("text", lambda row: row.isolation),
    "flavour": ("text", lambda row: row.flavour),
    "network": ("text", lambda row: row.network),
    "time": ("text", lambda row: row.time),
    "model": ("text", lambda row: row.made.model if row.made else ""),
    "attempt": ("number", lambda row: row.made.number if row.made else None),
    "finish": ("text", lambda row: row.made.finish if row.made else ""),
    "truncated": ("truth", lambda row: row.made.truncated if row.made else False),
    "flags": ("text", lambda row: " ".join(row.made.flags) if row.made else ""),
    "steps": ("number", lambda row: row.made.steps if row.made else None),
    "tokens": ("number", lambda row: row.made.tokens if row.made else None),
    "usd": ("number", lambda row: row.made.usd if row.made else None),
}

FIELDS = tuple(_FIELDS)
"""The names that an expression knows."""

_CLASS = "klass"
"""Stands for ``class``, which Python keeps for itself; as long, so that columns in messages stay right."""

_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class Selection:
    """A parsed expression. Raises OtvalUsageError for what the language does not have."""

    def __init__(self, text: str) -> None:
        self._tree = _parse(text)
        _Checker(text).check(self._tree)

    def __call__(self, row: Row) -> bool:
        """Whether a result is selected."""
        return bool(_value(self._tree, row))


def _parse(text: str) -> ast.expr:
    if len(text) > MOST_LETTERS:
        raise OtvalUsageError(f"--select: the expression is longer than {MOST_LETTERS} letters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(_as_python(text.strip()), mode="eval").body
    except SyntaxError as error:
        raise _refusal(text, error.offset, f"cannot be read: {error.msg}") from None
    except (ValueError, tokenize.TokenError, MemoryError, RecursionError) as error:
        raise _refusal(text, None, f"cannot be read: {error.args[0] if error.args else 'it is too deep'}") from None


def _as_python(text: str) -> str:
    """Write ``class`` and ``~`` as Python can parse them; other words for them are refused."""
    if "\n" in text:
        raise SyntaxError("it has more than one line")
    letters = list(text)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        start = token.start[1]
        if token.string in (_CLASS, "@") or token.type == tokenize.COMMENT:
            raise SyntaxError(f"{token.string[:10]} is not known", ("", 1, start + 1, text))
        if token.type == tokenize.NAME and token.string == "class":
            letters[start : start + len(_CLASS)] = _CLASS
        elif token.type == tokenize.OP and token.string == "~":
            letters[start] = "@"
    return "".join(letters)


def _refusal(text: str, column: int | None, why: str) -> OtvalUsageError:
    shown = ascii(text if len(text) <= 80 else text[:77] + "...")
    where = f" at letter {column}" if column else ""
    said = one_line(why).encode("ascii", "backslashreplace").decode()
    return OtvalUsageError(f"--select {shown}{where}: {said}; docs/reports.md tells the language")


class _Checker:
    """Refuses what is not in the language, before any row is looked at."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._nodes = 0

    def check(self, node: ast.expr, depth: int = 0) -> Kind | Literal["nothing"]:
        """Return the kind of an expression's value."""
        self._nodes += 1
        if self._nodes > MOST_NODES or depth > MOST_DEPTH:
            raise self._refuse(node, "is too large: give it in several runs")
        below = depth + 1
        match node:
            case ast.BoolOp(values=values):
                for value in values:
                    self.check(value, below)
                return "truth"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.check(operand, below)
                return "truth"
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if not isinstance(
                value, bool
            ):
                return "number"
            case ast.BinOp(op=ast.MatMult(), left=left, right=ast.Constant(value=str())):
                self._same(left, self.check(left, below), "text")
                return "truth"
            case ast.BinOp(op=ast.MatMult()):
                raise self._refuse(node, "~ needs a pattern in quotes on its right, as in task ~ 'answer-*'")
            case ast.Compare():
                self._comparison(node, below)
                return "truth"
            case ast.Constant(value=value):
                return self._constant(node, value)
            case ast.Name() | ast.Attribute():
                return self._field(node)
            case _:
                raise self._refuse(node, "has something that is not in the language")

    def _comparison(self, node: ast.Compare, depth: int) -> None:
        left = self.check(node.left, depth)
        for op, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, ast.In | ast.NotIn):
                self._membership(left, right, depth)
                left = "truth"
                continue
            if type(op) not in _COMPARE:
                raise self._refuse(right, "knows no `is`: write ==")
            kind = self.check(right, depth)
            if "nothing" in (left, kind) and not isinstance(op, ast.Eq | ast.NotEq):
                raise self._refuse(right, "None can only be compared by == and !=")
            self._same(right, left, kind)
            left = kind

    def _membership(self, left: str, right: ast.expr, depth: int) -> None:
        if isinstance(right, ast.Tuple | ast.List | ast.Set):
            for element in right.elts:
                if not isinstance(element, ast.Constant | ast.UnaryOp):
                    raise self._refuse(element, "a list holds values, as in ('fail', 'error')")
                self._same(element, left, self.check(element, depth))
        elif left != "text" or self.check(right, depth) != "text":
            raise self._refuse(right, "in needs a list, or text on both sides")

    def _constant(self, node: ast.Constant, value: object) -> Kind | Literal["nothing"]:
        match value:
            case bool():
                return "truth"
            case int() | float():
                return "number"
            case str():
                return "text"
            case None:
                return "nothing"
            case _:
                raise self._refuse(node, "has a value that is not in the language")

    def _field(self, node: ast.expr) -> Kind:
        name = _name(node)
        if not name:
            raise self._refuse(node, "has a dot that is not in a field's name")
        if name in _FIELDS:
            return _FIELDS[name][0]
        if name in REASONS or name in {str(verdict) for verdict in Verdict}:
            raise self._refuse(node, f"{name} is a value: put it in quotes")
        near = get_close_matches(name, FIELDS, n=1)
        help = f"do you mean {near[0]}?" if near else f"known are {', '.join(FIELDS)}"
        raise self._refuse(node, f"there is no field {name!a}: {help}")

    def _same(self, node: ast.expr, first: str, second: str) -> None:
        if first != second and "nothing" not in (first, second):
            raise self._refuse(node, f"compares a {first} with a {second}")

    def _refuse(self, node: ast.expr, why: str) -> OtvalUsageError:
        return _refusal(self._text, node.col_offset + 1, why)


def _name(node: ast.expr) -> str:
    """Return a field's name, in which a dot is a letter like others; empty for what is no name."""
    match node:
        case ast.Name(id=name):
            return "class" if name == _CLASS else name
        case ast.Attribute(value=ast.Name(id=first), attr=second):
            return f"{first}.{second}"
        case _:
            return ""


def _value(node: ast.expr, row: Row) -> Value:
    """Return the value of an expression that was checked."""
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_value(value, row) for value in values)
        case ast.BoolOp(values=values):
            return any(_value(value, row) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, row)
        case ast.UnaryOp(operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.BinOp(left=left, right=ast.Constant(value=str(pattern))):
            return fnmatchcase(str(_value(left, row)), pattern)
        case ast.Compare():
            return _compared(node, row)
        case ast.Constant(value=str() | int() | float() | None as value):
            return value
        case _:
            return _FIELDS[_name(node)][1](row)


def _compared(node: ast.Compare, row: Row) -> bool:
    left = _value(node.left, row)
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        if isinstance(op, ast.In | ast.NotIn):
            held = _holds(comparator, left, row)
            if held is isinstance(op, ast.NotIn):
                return False
            left = True
            continue
        right = _value(comparator, row)
        ordered = not isinstance(op, ast.Eq | ast.NotEq)
        # A field that is not there, such as the score of a build, is neither above nor below anything.
        if (ordered and (left is None or right is None)) or not _COMPARE[type(op)](left, right):
            return False
        left = right
    return True


def _holds(container: ast.expr, value: Value, row: Row) -> bool:
    if isinstance(container, ast.Tuple | ast.List | ast.Set):
        return value in [_value(element, row) for element in container.elts]
    return str(value) in str(_value(container, row))


def select(expression: str, rows: Sequence[Row]) -> Iterator[bool]:
    """Yield for each row whether it is selected. Raises OtvalUsageError before the first."""
    chosen = Selection(expression)
    return (chosen(row) for row in rows)
