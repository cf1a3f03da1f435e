"""The version of the checks: it changes whenever one of them may find something else."""

import sys
from dataclasses import replace

import pytest

import pytest_otval
from pytest_otval.checks import version
from pytest_otval.checks.registry import Check, all_checks
from pytest_otval.checks.version import OURS, checks_version, package_version
from pytest_otval.core import Severity

SOURCE = "def look(context):\n    return iter(())\n"


def check_of(look):
    return Check("x-y", Severity.ERROR, "x", "explains", "fix", look)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module, or one of a package, and return the check in it."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name, source=SOURCE):
        path = tmp_path / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        if "." in name:
            (path.parent / "__init__.py").touch()
        path.write_text(source)
        for known in [known for known in sys.modules if known.partition(".")[0] == name.partition(".")[0]]:
            monkeypatch.delitem(sys.modules, known)
        sys.path_importer_cache.clear()
        return check_of(__import__(name, fromlist=["look"]).look)

    return write


def test_it_is_the_same_for_the_same_checks():
    ours = list(all_checks().values())
    assert checks_version(ours) == checks_version(reversed(ours))


def test_a_check_more_or_another_text_is_another_version():
    first, *rest = all_checks().values()
    assert len({checks_version(every) for every in ([first, *rest], rest, [replace(first, fix="x"), *rest])}) == 3


def test_our_own_source_is_part_of_it(tmp_path, monkeypatch):
    for part in OURS:
        (tmp_path / part).parent.mkdir(exist_ok=True)
    (tmp_path / "core.py").write_text("")
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "a.py").write_text("a")
    monkeypatch.setattr(pytest_otval, "__file__", str(tmp_path / "__init__.py"))
    found = set()
    for text in ("a", "b"):
        (tmp_path / "checks" / "a.py").write_text(text)
        version._surroundings.cache_clear()
        found.add(checks_version([]))
    version._surroundings.cache_clear()
    assert len(found) == 2


def test_what_python_compiles_meanwhile_is_no_part_of_it(tmp_path, monkeypatch):
    package = tmp_path / "pytest_otval"
    (package / "stages" / "__pycache__").mkdir(parents=True)
    (package / "stages" / "one.py").write_text("ONE = 1\n")
    monkeypatch.setattr(pytest_otval, "__file__", str(package / "__init__.py"))
    monkeypatch.setattr(version, "_surroundings", tuple)
    before = package_version(("stages",))
    # Written under a name of its own, and renamed: it may be gone in a moment.
    (package / "stages" / "__pycache__" / "one.cpython-311-pytest-9.2.0.pyc.1047").symlink_to("gone")
    (package / "stages" / "__pycache__" / "one.cpython-311-pytest-9.2.0.pyc.1048").write_text("half")
    assert package_version(("stages",)) == before
    (package / "stages" / "data.txt").write_text("more")
    assert package_version(("stages",)) != before


def test_a_foreign_module_counts_by_its_source(module):
    first = checks_version([module("otval_foreign_a")])
    assert checks_version([module("otval_foreign_a")]) == first
    assert checks_version([module("otval_foreign_a", SOURCE + "# changed\n")]) != first


def test_a_foreign_package_counts_as_a_whole(module, tmp_path):
    check = module("otval_foreign_b.checks")
    first = checks_version([check])
    (tmp_path / "otval_foreign_b" / "helper.py").write_text("x = 1\n")
    assert checks_version([check]) != first


def test_a_check_without_source_is_not_kept():
    scope = {"__name__": "nowhere"}
    exec(SOURCE, scope)
    assert checks_version([check_of(scope["look"])]) is None
    assert checks_version([check_of(len)]) is None
