"""The plugin that is brought into a verifier's container, in a pytest of its own."""

import os
import subprocess
import sys

import pytest

from pytest_otval.trial.conditions import PLACE, Conditions

TESTS = """
import pytest

class TestOne:
    def test_a(self): pass
    def test_b(self): pass
    def test_c(self): pass

class TestTwo:
    def test_d(self): pass
    def test_e(self): pass

@pytest.mark.parametrize("number", range(4))
def test_f(number): pass
"""


@pytest.fixture
def order(tmp_path):
    """Run pytest on two modules as a verifier would under a seed; return the ids in their order, and what was told."""
    (tmp_path / "set").mkdir()
    for name in ("test_one.py", "test_two.py"):
        (tmp_path / "set" / name).write_text(TESTS)

    def run(seed, *args, python=(), **env):
        brought = Conditions(seed).bring(tmp_path / f"brought-{len(list(tmp_path.iterdir()))}")
        told = Conditions(seed).variables({})
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        variables |= {name: value.replace(PLACE, str(brought)) for name, value in told.items()} | env
        options = ["-v", "-p", "no:cacheprovider", "--rootdir=.", "-c", os.devnull]
        argv = [sys.executable, *python, "-m", "pytest", *options, *args]
        done = subprocess.run(argv, cwd=tmp_path / "set", env=variables, capture_output=True, text=True, check=True)
        ids = [line.split()[0] for line in done.stdout.splitlines() if "PASSED" in line and "::" in line]
        return ids, Conditions(seed).test_order(brought)["tests"]

    return run


def groups(ids):
    """Return the modules, and the classes of each, as they follow each other, each stretch once."""
    places = [tuple(id.split("::")[:-1]) for id in ids]
    return [place for number, place in enumerate(places) if number == 0 or places[number - 1] != place]


def test_a_seed_decides_the_order(order):
    written, _ = order(0, PYTHONPATH="")
    first, told = order(1)
    assert first == order(1)[0], "the same again"
    assert len({tuple(order(seed)[0]) for seed in (1, 2, 3)}) == 3
    assert sorted(first) == sorted(written)
    assert first != written
    assert told == len(written) == 18


def test_modules_and_classes_stay_together(order):
    ids, _ = order(2)
    modules = [module for module, *_ in groups(ids)]
    assert modules == sorted(modules, key=modules.index)
    classes = [place for place in groups(ids) if len(place) == 2]
    assert len(classes) == len(set(classes)) == 4


@pytest.mark.parametrize(
    "isolated",
    [
        {"python": ("-I",)},
        {"python": ("-E",)},
        {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        {"OTVAL_TEST_ORDER": ""},
    ],
    ids=str,
)
def test_where_plugins_are_not_taken_nothing_changes(order, isolated):
    ids, told = order(1, **isolated)
    assert ids == order(0, PYTHONPATH="")[0]
    assert told == 0


def test_warnings_as_errors_find_nothing(order):
    assert order(1, "-W", "error")[1] == 18


def test_workers_of_xdist_agree(order):
    assert order(1, "-n2")[1] == 18


def test_a_place_that_cannot_be_written_is_no_fault(tmp_path, order, monkeypatch):
    from pytest_otval.trial import conditions

    monkeypatch.setattr(conditions, "log_folder", lambda path: path)
    assert order(1) == (order(1)[0], 0)
