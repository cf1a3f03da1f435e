"""Instruction texts written by rule from failing tests: what they are called, document, call and expect to be raised.

Test code is parsed, never run, and never shown: a reader learns the behaviour's names, not the assertions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_MAX_IDS = 40
"""Parametrised ids that are listed; the rest is counted."""
_RAISES = frozenset({"raises", "assertRaises", "assertRaisesRegex"})


@dataclass(frozen=True, slots=True)
class TestedBehaviour:
    """What the source of one test function tells about the behaviour it wants."""

    path: str
    function: str
    """Its name in the file: ``Class.test_x`` or ``test_x``."""
    purpose: str = ""
    """First paragraph of its docstring, on one line."""
    names: tuple[str, ...] = ()
    """Names of the package that it uses, dotted, sorted."""
    raises: tuple[str, ...] = ()
    """Exceptions that it expects, sorted."""


@dataclass(slots=True)
class _Module:
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)
    """Local name -> dotted name in the package."""


def split_node_id(node_id: str) -> tuple[str, str]:
    """Return the file and the dotted function of a pytest node id, without parameters."""
    path, *names = node_id.partition("[")[0].split("::")
    return path, ".".join(names)


def describe_tests(node_ids: Iterable[str], sources: Mapping[str, bytes], package: str) -> Iterator[TestedBehaviour]:
    """Yield the facts of each test function among ``node_ids`` once, sorted; ``sources`` are the suite's files by path.

    A test that is made at run time, or whose file does not parse, has its name as only fact.
    """
    modules: dict[str, _Module] = {}
    for path, function in sorted({split_node_id(node_id) for node_id in node_ids}):
        if path not in modules:
            modules[path] = _parse(sources.get(path, b""), package)
        node = modules[path].functions.get(function)
        if node is None:
            yield TestedBehaviour(path, function)
        else:
            yield _facts(path, function, node, modules[path].imported)


def _parse(source: bytes, package: str) -> _Module:
    module = _Module()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return module
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _is_in(alias.name, package):
                    module.imported[alias.asname or alias.name.partition(".")[0]] = (
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and _is_in(node.module or "", package):
            for alias in node.names:
                module.imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for function in tree.body:
        if isinstance(function, ast.ClassDef):
            module.functions.update(
                {f"{function.name}.{one.name}": one for one in function.body if isinstance(one, ast.FunctionDef)}
            )
        elif isinstance(function, ast.FunctionDef):
            module.functions[function.name] = function
    return module


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _facts(path: str, function: str, node: ast.FunctionDef, imported: Mapping[str, str]) -> TestedBehaviour:
    names: set[str] = set()
    raises: set[str] = set()
    inside_a_chain: set[ast.AST] = set()
    for inner in ast.walk(node):  # a parent comes before its children
        if isinstance(inner, (ast.Attribute, ast.Name)) and inner not in inside_a_chain:
            chain, passed = _chain(inner)
            inside_a_chain.update(passed)
            head, _, rest = chain.partition(".")
            bare = head.removesuffix("()")
            if bare in imported:
                names.add(imported[bare] + head.removeprefix(bare) + (f".{rest}" if rest else ""))
        if isinstance(inner, ast.Call) and inner.args and _chain(inner.func)[0].rpartition(".")[2] in _RAISES:
            raises.update(filter(None, (_chain(one)[0] for one in _alternatives(inner.args[0]))))
    purpose = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
    return TestedBehaviour(path, function, purpose, tuple(sorted(names)), tuple(sorted(raises)))


def _alternatives(node: ast.expr) -> Sequence[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else (node,)


def _chain(node: ast.AST) -> tuple[str, list[ast.AST]]:
    """Return ``a.b().c`` for attributes and calls that hang on a name, else "", and the nodes of the chain."""
    parts: list[str] = []
    nodes: list[ast.AST] = []
    called = ""
    while True:
        nodes.append(node)
        match node:
            case ast.Attribute(value=value, attr=attr):
                parts.append(attr + called)
                node, called = value, ""
            case ast.Call(func=func):
                node, called = func, "()"
            case ast.Name(id=name):
                return ".".join([name + called, *reversed(parts)]), nodes
            case _:
                return "", nodes


def list_tests(facts: Sequence[TestedBehaviour]) -> str:
    """Return a Markdown list of the tests with what is known of each."""
    lines: list[str] = []
    for one in facts:
        lines.append(f"- `{one.function}` in `{one.path}`" + (f": {one.purpose}" if one.purpose else ""))
        if one.names:
            lines.append(f"  - uses {_code(one.names)}")
        if one.raises:
            lines.append(f"  - expects {_code(one.raises)} to be raised")
    return "\n".join(lines)


def list_cases(node_ids: Sequence[str]) -> str:
    """Return a Markdown list of parametrised test ids, or "" where there is none."""
    cases = [node_id for node_id in node_ids if "[" in node_id]
    lines = [f"- `{case.replace('`', chr(39))}`" for case in cases[:_MAX_IDS]]
    if len(cases) > _MAX_IDS:
        lines.append(f"- and {len(cases) - _MAX_IDS} more of the same functions")
    return "\n".join(lines)


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
