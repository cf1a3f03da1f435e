"""Which parameters a test has, read from the patch that adds it.

Only what pytest (3 to 9) surely calls so counts: parameters written as literals, or with ids that are. Where anything
else could take part in an id, there is no answer.
"""

from __future__ import annotations

import ast
import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import product

from pytest_otval.sources.adapters.diffs import ChangedFile, Part

_MAX_SIGNATURE = 30
"""Lines of a test's signature and decorators that are looked at."""
_MAX_IDS = 10_000
_FIXTURES = frozenset(
    re.findall(
        r"\w+", "self cls request tmp_path tmpdir tmp_path_factory tmpdir_factory monkeypatch capsys capfd caplog"
    )
)
"""Arguments that pytest itself gives, once each: they are no part of an id."""


class _UnknownError(Exception):
    """What takes part in an id cannot be told."""


def parametrized_ids(test: str, patch: Sequence[ChangedFile]) -> list[str]:
    """Return what stands in brackets in the ids of a test, ``FILE::[CLASS::]NAME``, in order.

    Empty where the patch does not show the whole of the test's decorators, or anything of them is no literal.
    """
    path, *names = test.split("::")
    found: list[list[str]] = []
    for file in patch:
        if file.paths[-1] != path:
            continue
        for part in file.parts:
            try:
                found += _in_part(part, names, file.added)
            except (_UnknownError, RecursionError, MemoryError, ValueError, TypeError):
                return []
    # Two tests of one name: only the later counts, and it may be elsewhere.
    return found[0] if len(found) == 1 and len(set(found[0])) == len(found[0]) else []


def _in_part(part: Part, names: Sequence[str], whole_file: bool) -> Iterator[list[str]]:
    *classes, name = names
    definition = re.compile(rf"([ \t]*)(?:async[ \t]+)?def[ \t]+{re.escape(name)}[ \t]*\(")
    for number, line in enumerate(part.lines):
        if found := definition.match(line):
            indent = found[1]
            if bool(indent) != bool(classes) or len(classes) > 1:
                raise _UnknownError
            if classes:
                _require_plain_class(part, number, classes[0])
            yield _ids(_function(part, number, indent, whole_file))


def _require_plain_class(part: Part, number: int, name: str) -> None:
    """Require that the class around a line is shown, and has neither decorators nor a parent to inherit marks from."""
    opening = re.compile(rf"class[ \t]+{re.escape(name)}[ \t]*(?:\([ \t]*(?:object)?[ \t]*\))?[ \t]*:")
    for above in range(number - 1, 0, -1):
        line = part.lines[above]
        if line.strip() and not line[0].isspace():
            if opening.match(line) and not part.lines[above - 1].strip():
                return
            break
        if "pytestmark" in line:
            break
    raise _UnknownError


def _function(part: Part, number: int, indent: str, whole_file: bool) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Return a function by the line of its name, with all of its decorators and an empty body."""
    begin = number
    while begin > 0 and number - begin < _MAX_SIGNATURE and _goes_on(part.lines[begin - 1], indent):
        begin -= 1
    if begin == 0 and not (whole_file and part.start <= 1):
        raise _UnknownError
    for end in range(number + 1, min(number + _MAX_SIGNATURE, len(part.lines)) + 1):
        code = textwrap.dedent("".join(part.lines[begin:end])).rstrip()
        try:
            parsed = ast.parse(f"{code} pass" if code.endswith(":") else code).body
        except (SyntaxError, ValueError):
            continue
        if len(parsed) == 1 and isinstance(parsed[0], ast.FunctionDef | ast.AsyncFunctionDef):
            return parsed[0]
    raise _UnknownError


def _goes_on(line: str, indent: str) -> bool:
    """Whether a line above a function can belong to its decorators: one itself, or what stands in its brackets."""
    if not line.strip() or not line.startswith(indent):
        return False
    rest = line[len(indent) :]
    return rest[0] in "@)]}" or rest[0].isspace() or rest[0] == "#"


def _ids(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given: set[str] = set(_FIXTURES)
    groups: list[list[str]] = []
    for decorator in function.decorator_list:
        text = ast.unparse(decorator)
        if not re.fullmatch(r"(?:pytest\.)?mark\.parametrize\(.*", text, re.DOTALL):
            if "parametrize" in text or not text.startswith(("pytest.mark.", "mark.")):
                raise _UnknownError
            continue
        assert isinstance(decorator, ast.Call)
        names, values = _parameters(decorator)
        given.update(names)
        groups.append(values)
    arguments = function.args
    asked = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    if not groups or not asked <= given:
        raise _UnknownError
    if math.prod(map(len, groups)) > _MAX_IDS:
        raise _UnknownError
    # The decorator next to the function comes first in an id.
    return ["-".join(reversed(row)) for row in product(*groups)]


def _parameters(call: ast.Call) -> tuple[list[str], list[str]]:
    """Return the argument names of a parametrize mark, and the ids of its rows."""
    keywords = {one.arg: one.value for one in call.keywords}
    arguments = [*call.args, *(keywords.pop(key) for key in ("argnames", "argvalues") if key in keywords)]
    if len(arguments) != 2 or keywords.keys() - {"ids"}:
        raise _UnknownError
    names = _literal(arguments[0])
    bare = isinstance(names, str) and "," not in names
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",")]
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise _UnknownError
    if not isinstance(arguments[1], ast.List | ast.Tuple):
        raise _UnknownError
    explicit = _literal(keywords["ids"]) if "ids" in keywords else [None] * len(arguments[1].elts)
    if not isinstance(explicit, list | tuple) or len(explicit) != len(arguments[1].elts):
        raise _UnknownError
    rows = (
        _row(node, names, bare, index, one)
        for index, (node, one) in enumerate(zip(arguments[1].elts, explicit, strict=True))
    )
    return list(names), list(rows)


def _row(node: ast.expr, names: Sequence[str], bare: bool, index: int, explicit: object) -> str:
    """Return the id of a row. A ``bare`` name, one text alone, has values that are in no tuple."""
    values: Sequence[ast.expr]
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.param":
        named = {one.arg: one.value for one in node.keywords}
        explicit = _literal(named["id"]) if "id" in named else explicit
        values = node.args
    elif bare:
        values = [node]
    elif isinstance(node, ast.Tuple | ast.List):
        values = node.elts
    else:
        raise _UnknownError
    if explicit is not None:
        return _text(explicit, "", index)
    if len(values) != len(names):
        raise _UnknownError
    return "-".join(_text(_literal(value), name, index) for value, name in zip(values, names, strict=True))


def _text(value: object, name: str, index: int) -> str:
    """Return how pytest writes a parameter's value in an id."""
    if isinstance(value, str) and value.isascii() and value.isprintable() and "\\" not in value:
        return value
    if value is None or isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, list | tuple | dict | set) and name:
        return f"{name}{index}"
    raise _UnknownError


def _literal(node: ast.expr) -> object:
    return ast.literal_eval(node)
