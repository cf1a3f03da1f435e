"""Who may import whom. Modules import only from what stands before them."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_otval

PACKAGE = Path(pytest_otval.__file__).parent

ORDER = (
    ("core",),
    ("settings",),
    ("workspace",),
    ("profile",),
    ("waiting",),
    ("kept",),
    ("hub",),
    ("task",),
    ("checks",),
    ("sandbox",),
    ("images",),
    ("leaks",),
    ("runtimes",),
    ("harden",),
    ("trial",),
    ("attacks",),
    ("llm",),
    ("judge",),
    ("ledger",),
    ("evidence", "history"),
    ("stages",),
    ("contract",),
    ("cluster",),
    ("report",),
    ("sources",),
    ("hookspecs",),
    ("glue",),
    ("plugin",),
    ("__main__",),
)
"""Modules and packages, lowest first; those of one line do not import each other."""

LEVEL = {name: level for level, names in enumerate(ORDER) for name in names}

HEAVY = {
    "pydantic",
    "sh",
    "submitit",
    "filelock",
    "openai",
    "plotly",
    "pyarrow",
    "tree_sitter",
    "unidiff",
    "dockerfile",
    "rich",
    "scipy",
    "numpy",
    "huggingface_hub",
    "tomlkit",
}
"""Libraries that every pytest run of anybody would pay for, if importing the plugin imported them."""

FILES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
MODULES = [path for path in FILES if path.parts[0] != "data"]
"""What lies in ``data`` runs in containers."""


def imported_by(source: str, package: str):
    """Yield (line, full module name) of each import, also inside functions; ``from x import y`` gives ``x.y``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            yield from ((node.lineno, f"{name}.{alias.name}") for alias in node.names)


def unit_of(module: Path) -> str:
    return module.parts[0].removesuffix(".py")


def imports(module: Path):
    package = ".".join(("pytest_otval", *module.parent.parts))
    return imported_by((PACKAGE / module).read_text(), package)


def test_all_ways_to_import_are_seen():
    source = "import a.b\ndef f():\n  from .c import d\nfrom .. import e\nif x:\n  from pytest_otval import f\n"
    found = {name for _, name in imported_by(source, "pytest_otval.stages")}
    assert found == {"a.b", "pytest_otval.stages.c.d", "pytest_otval.e", "pytest_otval.f"}


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_imports_point_downwards(module):
    unit = unit_of(module)
    assert unit in LEVEL, f"{unit} has no place in the order"
    for line, name in imports(module):
        parts = name.split(".")
        if parts[0] != "pytest_otval" or len(parts) == 1 or parts[1] == unit:
            continue
        assert LEVEL[parts[1]] < LEVEL[unit], f"{module}:{line}: {unit} imports {name}"


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_only_the_pytest_face_imports_pytest(module):
    allowed = {"pytest", "_pytest", "pluggy", "xdist", "pytest_html"} if unit_of(module) in FACE else set()
    for line, name in imports(module):
        top = name.split(".")[0]
        assert top not in PYTEST - allowed, f"{module}:{line} imports {name}"


PYTEST = {"pytest", "_pytest", "pluggy", "xdist", "pytest_html"}
FACE = {"plugin", "glue", "hookspecs"}


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_only_the_sandbox_imports_sh(module):
    if unit_of(module) != "sandbox":
        assert not [line for line, name in imports(module) if name.split(".")[0] == "sh"]


def imported_with(module):
    """Return the names of all modules that are there once this one is."""
    script = f"import sys, {module}; print('\\n'.join(sorted(sys.modules)))"
    argv = [sys.executable, "-c", script]
    names = set(subprocess.run(argv, capture_output=True, text=True, check=True, cwd="/").stdout.split())
    assert module in names
    return names


def test_importing_the_plugin_imports_no_heavy_library():
    assert HEAVY & {name.split(".")[0] for name in imported_with("pytest_otval.plugin")} == set()


def test_a_patch_py_imports_what_its_command_needs():
    names = imported_with("pytest_otval.sources.dataset")
    assert {"numpy", "pyarrow", "pytest_otval.report", "pytest_otval.stages"} & names == set()
