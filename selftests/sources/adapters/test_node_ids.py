"""Ids that were cut at a blank, and what a patch proves about them."""

import subprocess
import sys

import pytest

from pytest_otval.sources.adapters.base import RefusalError
from pytest_otval.sources.adapters.diffs import read_patch
from pytest_otval.sources.adapters.node_ids import check_ids, is_cut, repair_ids
from pytest_otval.sources.adapters.parametrized import parametrized_ids
from selftests.sources.adapters.samples import TESTS, diff

FILE = "tests/test_product.py"
SUM = f"{FILE}::test_sum"


def patch(after=TESTS, before=""):
    return read_patch(diff(FILE, before, after), "test_patch")


def test_cut_ids_are_completed_where_the_patch_shows_the_parameters():
    ids = [f"{SUM}[1", f"{FILE}::test_zero", f"{SUM}[2"]
    assert repair_ids(ids, patch(), "X") == ([f"{SUM}[1 2-3]", f"{FILE}::test_zero", f"{SUM}[2 2-4]"], 2)


def test_as_many_must_be_cut_as_begin_so():
    both = TESTS.replace('"2 2", 4', '"1 3", 4')
    assert repair_ids([f"{SUM}[1", f"{SUM}[1"], patch(both), "X")[0] == [f"{SUM}[1 2-3]", f"{SUM}[1 3-4]"]
    with pytest.raises(RefusalError, match="2 tests of the test patch begin so") as refused:
        repair_ids([f"{SUM}[1"], patch(both), "X")
    assert refused.value.reason == "cut-ids"


def test_whole_ids_stay_and_stand_once():
    ids = [f"{SUM}[1 2-3]", f"{SUM}[5-5]", f"{SUM}[5-5]"]
    assert repair_ids(ids, (), "X") == (ids[:2], 0)
    assert not is_cut(f"{SUM}[a]b]") and is_cut(f"{SUM}[a]b")


UNKNOWN = {
    "another file": ("x = 1\n", ""),
    "a decorator out of sight": (
        TESTS.replace("assert (add", "assert  (add"),
        TESTS,
    ),
    "a value that is no literal": (TESTS.replace('("1 2", 3)', '("1" + " 2", 3)'), ""),
    "values from elsewhere": (TESTS.replace('[("1 2", 3), ("2 2", 4), ("5", 5)]', "ROWS"), ""),
    "ids from elsewhere": (TESTS.replace('("5", 5)])', '("5", 5)], ids=str)'), ""),
    "a fixture that may have parameters": (TESTS.replace("(text, total):", "(text, total, database):"), ""),
    "a decorator of somebody": (TESTS.replace("@pytest.mark.param", "@rows\n@pytest.mark.param"), ""),
    "indirect parameters": (TESTS.replace('("5", 5)])', '("5", 5)], indirect=True)'), ""),
    "the test twice": (TESTS + "\n\n" + TESTS, ""),
    "the same id twice": (TESTS.replace('("2 2", 4)', '("1 2", 3)'), ""),
    "no syntax": (TESTS.replace('("5", 5)])', '("5", 5)]'), ""),
    "a class": ("class TestIt:\n" + "".join(f"    {line}" for line in TESTS.splitlines(True)), ""),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_nothing_is_guessed(case):
    assert parametrized_ids(SUM, patch(*UNKNOWN[case])) == []
    with pytest.raises(RefusalError, match="cut at a blank"):
        repair_ids([f"{SUM}[1"], patch(*UNKNOWN[case]), "X")


SUITE = """
import pytest


@pytest.mark.slow
@pytest.mark.parametrize("a, b", [("x y", 1), ("z w", [1]), pytest.param("q", 2, id="my id"), ("", -1.5), ("-", None)])
@pytest.mark.parametrize(
    "c",
    ["one two", "three"],  # many
)
def test_many(
    a, b,
    c: str, tmp_path
) -> None:
    pass


class TestIt:
    @pytest.mark.parametrize(("a",), [("p q",), (True,)], ids=["first one", None])
    def test_method(self, a):
        pass

    @pytest.mark.parametrize(argnames=["a", "b"], argvalues=(((1, 2), {}), [b"" and 0, 1e100]))
    async def test_other(self, a, b):
        pass


@pytest.mark.parametrize("a", ["1 2", "3\\\\4", "[5] 6"])
def test_odd(a): pass
"""


def test_ids_are_those_that_pytest_gives(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / FILE).write_text(SUITE.replace('b"" and 0', "0"))
    command = [sys.executable, "-m", "pytest", "--co", "-q", "-p", "no:cacheprovider", "tests"]
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    listed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=env).stdout
    given = {line for line in listed.splitlines() if "::" in line}
    shown = patch(SUITE.replace('b"" and 0', "0"))
    tests = ("::test_many", "::TestIt::test_method", "::TestIt::test_other", "::test_odd")
    told = {f"{FILE}{test}[{one}]" for test in tests for one in parametrized_ids(f"{FILE}{test}", shown)}
    assert len(given) == 10 + 2 + 2 + 3
    # What pytest may write in several ways is not told.
    assert told <= given
    assert {one.partition("[")[0].rpartition("::")[2] for one in told} == {"test_many", "test_method", "test_other"}


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        ("test_x (a.b.TestC)", "unsupported-tests"),
        ("test_x", "unsupported-tests"),
        ("[100%]", "unsupported-tests"),
        ("tests/test_x.py", "unsupported-tests"),
        ("../x.py::test_a", "unsafe-path"),
        ("/x.py::test_a", "unsafe-path"),
        ("-x.py::test_a", "unsafe-path"),
        ("a//x.py::test_a", "unsafe-path"),
    ],
)
def test_what_is_no_id_of_pytest_is_refused(one, reason):
    with pytest.raises(RefusalError) as refused:
        check_ids([one], "FAIL_TO_PASS")
    assert refused.value.reason == reason
