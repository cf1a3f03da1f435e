"""Reading Python tests: what their names hold, and that no file is too odd."""

from __future__ import annotations

import ast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_otval.checks import python_asserts, python_flaky, python_ids, python_marks, python_versions
from pytest_otval.checks.imports import imported_modules
from pytest_otval.checks.python_ast import TestCase as Case
from pytest_otval.checks.python_ast import index, parse_python, statements
from pytest_otval.checks.python_fixtures import missing_fixtures, plugin_fixtures


def body(*lines):
    return ast.parse("def test_it():\n" + "".join(f"    {line}\n" for line in lines))


@pytest.mark.parametrize(
    ("lines", "limits"),
    [
        (["t = time.time()", "x = time.time() - t", "assert x < 2"], [2.0]),
        (["t = time.time()", "assert 1 <= time.time() - t <= 2"], [2.0]),
        (["t = time.perf_counter_ns()", "assert time.perf_counter_ns() - t < 5e8"], [0.5]),
        (["t = time.time()", "x = (time.time() - t) * 1000", "assert not x >= 250"], []),
        (["t = time.time()", "x = (time.time() - t) * 1000", "assert 250 > x"], [0.25]),
        (["t = time.time()", "assert time.time() - t < limit"], []),
        (["t = start()", "assert time.time() - t < 3"], []),
    ],
)
def test_limits_of_elapsed_time_are_in_seconds(lines, limits):
    assert [limit for _, limit in python_flaky.time_limits(body(*lines))] == limits


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("assert datetime.datetime.now() < datetime.datetime(2030, 1, 1)", True),
        ("assert str(date.today()) == '2025-01-01'", True),
        ("assert datetime.now() > started", False),
        ("assert datetime(2025, 1, 1) < datetime(2026, 1, 1)", False),
    ],
)
def test_dates_that_are_compared_with_constants(line, found):
    assert bool(list(python_flaky.fixed(body(line), "date"))) == found


def test_an_assertion_counts_through_helpers_that_call_each_other():
    module = ast.parse("def a():\n    b()\ndef b():\n    a()\n    assert 1\ndef test_it():\n    run(a)\n")
    asserts = python_asserts.Asserts(module, frozenset())
    assert asserts.can_fail(index(module).functions[-1])


def test_functions_that_only_call_each_other_assert_nothing():
    module = ast.parse("def a():\n    b()\ndef b():\n    a()\n")
    assert not any(map(python_asserts.Asserts(module, frozenset()).can_fail, index(module).functions))


def test_statements_come_in_the_order_of_the_text():
    module = ast.parse(
        "if a:\n  b\nelse:\n  c\ntry:\n  d\nexcept E:\n  e\nfinally:\n  f\nmatch g:\n  case 1:\n    h\ni\n"
    )
    assert [one.lineno for one in statements(module.body)] == sorted(one.lineno for one in statements(module.body))
    assert {ast.unparse(one) for one in statements(module.body) if isinstance(one, ast.Expr)} == set("bcdefhi")


@pytest.mark.parametrize(
    ("text", "fixtures"),
    [
        ("RUN pip install pytest==8.4.1 pytest-json-ctrf", set()),
        ("RUN pip install pytest_mock", {"mocker"}),
        ("RUN pip install pytest-unheard-of", None),
        ("RUN pip install -r requirements.txt", None),
        ("RUN pip install Faker", None),
    ],
)
def test_fixtures_of_plugins(text, fixtures):
    found = plugin_fixtures((text,))
    assert found is None if fixtures is None else found is not None and fixtures <= found


@pytest.mark.parametrize(
    ("base", "texts", "version"),
    [
        ("python:3.9-slim", [], (3, 9)),
        ("docker.io/library/python:3.12@sha256:0", [], (3, 12)),
        ("python:3", [], None),
        ("cpython:3.9", [], None),
        ("ubuntu:22.04", ["RUN apt-get install -y python3"], (3, 10)),
        ("ubuntu:22.04", ["RUN add-apt-repository ppa:deadsnakes/ppa"], None),
        ("python:3.9", ["uvx pytest /tests"], None),
        ("node:20", [], None),
    ],
)
def test_the_python_of_an_image(base, texts, version):
    assert python_versions.declared(base, texts) == version


ODD = (
    "x = " + "+".join("1" * 3000),
    "def test_it():\n    assert x" + ".now()" * 900 + " == 1\n",
    "def test_it():\n    t = time.time()\n    assert (time.time() - t)" + " * 2" * 900 + " < 3\n",
    "import pytest\ndef test_it():\n    if " + " + ".join("x" * 2000) + ":\n        pytest.skip('')\n",
    "@pytest.mark.skipif(" + "-" * 150 + "1, reason='')\ndef test_it(a, /, *, b): ...\n",
    "@pytest.mark.parametrize()\n@pytest.mark.parametrize\n@x[0](1)\ndef test_it(a): ...\npytestmark = 3\n",
    "class Test:\n    pytestmark = []\n    def test_it(): ...\n    async def test_that(*a, **b): ...\n",
)


def judge(text):
    module = parse_python(text)
    python_versions.unreadable(text, (3, 8))
    if module is None:
        return
    asserts = python_asserts.Asserts(module, frozenset(("x",)))
    for function in index(module).functions:
        asserts.can_fail(function)
        list(python_asserts.swallowed(Case(function, None)))
        python_asserts.existence_only(function)
        python_asserts.returns_comparison(function)
    python_flaky.unseeded(module)
    for find in (
        python_asserts.always_true,
        python_marks.xfails,
        python_marks.skips,
        python_marks.empty_parameters,
        python_flaky.time_limits,
    ):
        list(find(module))
    for kind in ("date", "host"):
        list(python_flaky.fixed(module, kind))
    list(missing_fixtures(module, [module], frozenset()))
    list(python_versions.absent_modules(module, (3, 8)))


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_no_file_is_too_odd(text):
    judge(text)


PARTS = st.sampled_from(
    [
        *("import pytest, time\n", "def test_a(x, y=1):\n    ", "class Test:\n    ", "assert ", "(1, 'x')", " or True"),
        *("\n", "    ", "try:\n        ", "except Exception:\n        pass\n", "time.time()", " - ", "x = ", "x < 2"),
        *("@pytest.mark.parametrize('a', ", "[]", ")", "@pytest.mark.xfail\n", "pytest.skip('')\n", "if x:\n        "),
    ]
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(PARTS, max_size=25).map("".join))
def test_no_mixture_of_python_is_too_odd(text):
    judge(text)


@given(st.text(alphabet='[]{}":,\\a.py_tesx\n ', max_size=80), st.sampled_from(["a.json", "a.txt"]))
def test_no_list_of_ids_is_too_odd(text, name):
    list(python_ids.cut_ids(name, f"{text}a.py::test_a[{text}"))


def test_a_word_of_half_a_megabyte_is_gone_through_once():
    # Of each of its letters the rest of the word was read anew: many minutes for a test file of a public dataset.
    long = f'"{"a" * 500_000}"\nspec_from_file_location("solution", "/app/solution.py")\n'
    assert imported_modules(long) == {"solution"}
