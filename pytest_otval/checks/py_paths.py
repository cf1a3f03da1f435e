"""Texts and paths that expressions of a Python file surely are: constants, ``Path(...) / ...``, names given once."""

from __future__ import annotations

import ast
import posixpath
from collections import Counter
from collections.abc import Mapping

from pytest_otval.checks.python_ast import dotted, nodes

_JOINERS = frozenset(("Path", "pathlib.Path", "PurePosixPath", "os.path.join", "str", "join"))
_ROUNDS = 3
"""Names made of names made of names."""


def text_of(node: ast.expr, known: Mapping[str, str]) -> str | None:
    """Return the text or path that an expression surely is, given what names are; None where it is not known."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.Name(id=name):
            return known.get(name)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _joined([left, right], known)
        case ast.Call(func=ast.Name() | ast.Attribute() as func, args=[_, *_] as args, keywords=[]):
            return _joined(args, known) if dotted(func) in _JOINERS else None
    return None


def _joined(nodes: list[ast.expr], known: Mapping[str, str]) -> str | None:
    parts = [text_of(node, known) for node in nodes]
    whole = [part for part in parts if part is not None]
    return posixpath.join(*whole) if len(whole) == len(parts) else None


def known_names(module: ast.Module) -> Mapping[str, str]:
    """Return the names that are one text or path in the whole file."""
    bound: Counter[str] = Counter()
    given: dict[str, list[ast.expr]] = {}
    for node in nodes(module):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                given.setdefault(name, []).append(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                given.setdefault(name, []).append(value)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name) | ast.alias(asname=str() as name):
                bound[name] += 1
    known: dict[str, str] = {}
    for _ in range(_ROUNDS):
        for name, values in given.items():
            texts = {text_of(value, known) for value in values}
            if bound[name] == len(values) and len(texts) == 1 and (text := texts.pop()) is not None:
                known[name] = text
    return known
