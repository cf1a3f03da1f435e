"""What the repository holds of datasets/pypi-releases, and the grader that its tasks carry."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_otval.sources.releases.pairs import load_releases, read_ids
from pytest_otval.sources.releases.task import fill, read_templates
from pytest_otval.task.dataset import load_dataset

FOLDER = Path(__file__).parents[3] / "datasets/pypi-releases"
RELEASES = load_releases(FOLDER / "releases.toml")
SUITE = """
import unittest
import pytest

class TestOuter:
    class TestInner:
        def test_deep(self): pass

class TestCase(unittest.TestCase):
    def test_method(self): pass

@pytest.mark.parametrize("x", ["a::b", "c[d]", "e.py/f", " ", "<&\\"\\x1b", "ü"])
def test_odd(x): pass

@pytest.mark.parametrize("x", [1, 2])
def test_half(x): assert x == 1

@pytest.fixture
def falls():
    yield
    raise RuntimeError

def test_teardown(falls): pass
def test_skipped(): pytest.skip("no")
@pytest.mark.xfail
def test_expected(): assert False
"""


def grader():
    spec = importlib.util.spec_from_file_location("grade", FOLDER / "template/grade.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("pair", RELEASES.pair, ids=lambda pair: pair.name)
def test_the_ids_are_the_pinned_ones(pair):
    ids = read_ids(FOLDER / "ids" / f"{pair.name}.txt")
    assert pair.why_not_the_pinned(ids) == ""
    assert list(ids) == sorted(ids)
    assert not set(ids) & (set(pair.fail_to_pass) | pair.left_out_ids)


@pytest.mark.parametrize("pair", RELEASES.pair, ids=lambda pair: pair.name)
def test_the_report_tells_all_ids_apart(pair):
    ids = [*pair.fail_to_pass, *read_ids(FOLDER / "ids" / f"{pair.name}.txt")]
    assert len(set(map(grader().key, ids))) == len(ids)


def test_no_file_is_without_its_pair():
    assert {path.stem for path in (FOLDER / "ids").iterdir()} == {pair.name for pair in RELEASES.pair}
    assert {pin for pair in RELEASES.pair for pin in pair.wheels} == set(RELEASES.wheels)


def test_enough_pairs_run_on_every_change():
    assert sum(pair.ci for pair in RELEASES.pair) >= 12


def test_the_dataset_has_no_findings():
    assert load_dataset(FOLDER).findings == ()


def test_the_templates_name_nothing_unknown():
    known = "NAME PACKAGE OLD NEW LICENCE CODE CODE_LIST TESTS FACTS CASES PYTHONPATH PYTHONPATH_HINT CONFIG"
    known += " ARGUMENTS REMOVE"
    for name, content in read_templates(FOLDER / "template").items():
        assert "@" not in fill(content, dict.fromkeys(known.split(), "x")), name


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """A report by pytest, and its own list of the ids that passed."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "sub").mkdir()
    (folder / "sub/test_it.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "-rp", "-p", "no:cacheprovider", "--junitxml=report.xml", "sub"]
    run = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    )
    passed = {line.removeprefix("PASSED ") for line in run.stdout.splitlines() if line.startswith("PASSED ")}
    return folder / "report.xml", passed


def test_what_pytest_says_passed_is_what_the_grader_reads(reported):
    report, passed = reported
    grade = grader()
    passed -= {"sub/test_it.py::test_teardown"}  # its body passed, its teardown did not
    assert len(passed) == 9
    assert grade.passed_tests(report) == {grade.key(one) for one in passed}


def grade(tmp_path, report, fail_to_pass, pass_to_pass=()):
    ids = {"fail_to_pass": list(fail_to_pass), "pass_to_pass": list(pass_to_pass)}
    (tmp_path / "ids.json").write_text(json.dumps(ids))
    return grader().main(str(tmp_path / "ids.json"), str(report))


def test_all_expected_tests_must_have_passed(tmp_path, reported, capsys):
    report, passed = reported
    good = sorted(passed - {"sub/test_it.py::test_teardown"})
    assert grade(tmp_path, report, good[:1], good[1:]) == 0
    for bad in ("test_half[2]", "test_teardown", "test_skipped", "test_expected", "test_absent"):
        assert grade(tmp_path, report, good[:1], [f"sub/test_it.py::{bad}"]) == 1
        assert grade(tmp_path, report, [*good[:1], f"sub/test_it.py::{bad}"], good[1:]) == 1
        assert f"did not pass: sub/test_it.py::{bad}" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["", "<testsuites>", "no xml", '<a xmlns:x="y"><x:testcase/></a>', "<testcase/>"])
def test_a_broken_report_passes_nothing(tmp_path, content):
    (tmp_path / "report.xml").write_text(content)
    assert grade(tmp_path, tmp_path / "report.xml", ["t.py::test_x"]) == 1


def test_no_report_passes_nothing(tmp_path):
    assert grade(tmp_path, tmp_path / "report.xml", ["t.py::test_x"]) == 1


def test_no_expectation_passes_nothing(tmp_path, reported):
    assert grade(tmp_path, reported[0], []) == 1


def test_one_bad_entry_of_two_counts(tmp_path):
    cases = '<testcase classname="t" name="test_x"/>'
    (tmp_path / "report.xml").write_text(f"<s>{cases}{cases}</s>")
    assert grade(tmp_path, tmp_path / "report.xml", ["t.py::test_x"]) == 0
    (tmp_path / "report.xml").write_text(f"<s>{cases.replace('/>', '><error/></testcase>')}{cases}</s>")
    assert grade(tmp_path, tmp_path / "report.xml", ["t.py::test_x"]) == 1
