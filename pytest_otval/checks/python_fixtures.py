"""Fixtures that Python tests ask for and nothing defines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from pytest_otval.checks.python_ast import TestCase, dotted, index, keyword, marks, nodes, test_cases

_BUILT_IN = frozenset(
    (
        *("cache", "capfd", "capfdbinary", "caplog", "capsys", "capsysbinary", "capteesys", "doctest_namespace"),
        *("monkeypatch", "pytestconfig", "pytester", "record_property", "record_testsuite_property"),
        *("record_xml_attribute", "recwarn", "request", "subtests", "testdir", "tmp_path", "tmp_path_factory"),
        *("tmpdir", "tmpdir_factory"),
    )
)
_PLUGIN = re.compile(r"\bpytest[-_]([a-z0-9][a-z0-9_-]*)", re.IGNORECASE)
_PLUGINS = {
    "json-ctrf": (),
    "json-report": ("json_metadata",),
    "ctrf": (),
    "timeout": (),
    "xdist": ("worker_id", "testrun_uid"),
    "cov": ("cov", "no_cover"),
    "asyncio": ("event_loop", "event_loop_policy", "unused_tcp_port", "unused_tcp_port_factory"),
    "mock": ("mocker", "class_mocker", "module_mocker", "package_mocker", "session_mocker"),
    "benchmark": ("benchmark", "benchmark_weave"),
    "order": (),
    "ordering": (),
    "rerunfailures": (),
    "repeat": (),
    "html": ("extra", "extras"),
    "sugar": (),
    "randomly": (),
}
"""The fixtures of well-known plugins; with any other plugin there is no telling."""
_OTHER_PLUGINS = re.compile(
    r"\b(?:anyio|trio|hypothesis|faker|pyfakefs|respx|requests[-_]mock|time[-_]machine|syrupy|celery|schemathesis"
    r"|aioresponses|betamax|inline[-_]snapshot|typeguard|django|httpx|playwright|ansible|testinfra)\b",
    re.IGNORECASE,
)
"""Packages that bring a pytest plugin of their own."""
_UNKNOWN_PACKAGES = re.compile(
    r"\s-r\s|\s--requirement|\s-e\s|git clone|poetry|uv sync|conda|pip3? install \.|pdm install|setup\.py"
)
"""Ways to install that do not name the packages."""


@lru_cache(maxsize=4)
def plugin_fixtures(texts: tuple[str, ...]) -> frozenset[str] | None:
    """Return the fixtures of the plugins that some texts install, or None where they may install any."""
    names: set[str] = set()
    for text in texts:
        if _OTHER_PLUGINS.search(text) or _UNKNOWN_PACKAGES.search(text):
            return None
        for plugin in _PLUGIN.findall(text):
            fixtures = _PLUGINS.get(plugin.lower().replace("_", "-"))
            if fixtures is None:
                return None
            names.update(fixtures)
    return frozenset(names)


def missing_fixtures(
    module: ast.Module, conftests: Sequence[ast.Module], plugins: frozenset[str]
) -> Iterator[tuple[int, str, str]]:
    """Yield the line and name of each test that asks for an unknown fixture, with the fixture."""
    shared = _parameters([*marks(module)])
    if shared is None:
        return
    known = _BUILT_IN | plugins | shared
    unknown = [(case, name) for case in test_cases(module) for name in _asked(case) if name not in known]
    for one in (module, *conftests) if unknown else ():
        defined = _defined(one)
        if defined is None:
            return
        unknown = [(case, name) for case, name in unknown if name not in defined]
    yield from ((case.function.lineno, case.name, name) for case, name in unknown)


def _defined(module: ast.Module) -> frozenset[str] | None:
    """Return what a module may define as a fixture, imports included; None where it may define anything."""
    names: set[str] = set()
    for node in nodes(module):
        match node:
            case ast.ImportFrom(names=[ast.alias(name="*")]):
                return None
            case ast.Import() | ast.ImportFrom():
                names.update(one.asname or one.name for one in node.names)
            case ast.Name(id="pytest_plugins", ctx=ast.Store()):
                return None
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
    for function in index(module).functions:
        if function.name in ("pytest_generate_tests", "pytest_configure", "pytest_pyfunc_call"):
            return None
        for decorator in function.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if "fixture" in dotted(called).rsplit(".", 1)[-1]:
                renamed = keyword(decorator, "name")
                names.add(renamed.value if _is_text(renamed) else function.name)  # type: ignore[union-attr]
    return frozenset(names)


def _is_text(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _asked(case: TestCase) -> list[str]:
    """Return the fixtures a test asks for; none where decorators or base classes may hand them in."""
    function, owner = case.function, case.owner
    if owner is not None and any(dotted(base) != "object" for base in owner.bases):
        return []
    own = list(marks(function))
    if len(own) != len(function.decorator_list) or any(dotted(d) == "staticmethod" for d in function.decorator_list):
        return []
    given = _parameters([*own, *(marks(owner) if owner is not None else ())])
    if given is None:
        return []
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    required = positional[: len(positional) - len(arguments.defaults)]
    required += [
        one for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None
    ]
    names = [one.arg for one in required]
    return [name for name in (names[1:] if owner is not None else names) if name not in given]


def _parameters(found: Sequence[tuple[str, ast.expr]]) -> set[str] | None:
    """Return the names that parametrize marks give, or None where a mark does not spell them."""
    names: set[str] = set()
    for mark, node in found:
        if mark != "parametrize" or not isinstance(node, ast.Call):
            continue
        first = node.args[0] if node.args else keyword(node, "argnames")
        listed = first.elts if isinstance(first, ast.List | ast.Tuple) else [first]
        for one in listed:
            if not (isinstance(one, ast.Constant) and isinstance(one.value, str)):
                return None
            names.update(part.strip() for part in one.value.split(","))
    return names
