"""Bugs of BugsInPy."""

import json
import os

import pytest

from pytest_otval.sources.adapters.base import Converted, RefusalError, Refused
from pytest_otval.sources.adapters.bugsinpy_tests import read_tests
from pytest_otval.sources.adapters.registry import make_adapter
from pytest_otval.sources.files import SourceError
from selftests.sources.adapters.samples import COMMIT, bug, diff, write_folder


def convert(tmp_path, **changes):
    (outcome,) = make_adapter("bugsinpy").convert(write_folder(tmp_path, bug(**changes)))
    return outcome


def test_a_bug_becomes_a_task(tmp_path):
    outcome = convert(tmp_path)
    assert isinstance(outcome, Converted), outcome
    files = {path: file.content.decode() for path, file in outcome.files.items()}
    assert outcome.name == "product-1"
    assert "FROM python:3.8.3\n" in files["environment/Dockerfile"]
    assert f"git checkout -q {COMMIT} " in files["environment/Dockerfile"]
    assert f"git checkout -q {COMMIT[::-1]} -- tests/test_product.py" in files["environment/Dockerfile"]
    assert files["environment/requirements.txt"] == "pytest==5.4.3\n"
    assert files["environment/project-setup.txt"] == files["tests/project-setup.txt"] == "pip install -e .\n"
    assert json.loads(files["tests/ids.json"])["selected"] == ["tests/test_product.py::test_sum"]
    # It would be run by itself.
    assert "tests/setup.sh" not in files


def test_the_first_part_of_a_python_path_is_the_project(tmp_path):
    info = bug()["projects/product/bugs/1/bug.info"] + 'pythonpath="product/build/lib/;product"\n'
    outcome = convert(tmp_path, **{"bug.info": info})
    assert b"\nENV PYTHONPATH=/testbed/build/lib:/testbed\n" in outcome.files["environment/Dockerfile"].content


def test_a_slash_too_many_is_dropped(tmp_path):
    outcome = convert(tmp_path, **{"bug.info": INFO.replace("tests/test_p", "tests//test_p")})
    assert b" -- tests/test_product.py " in outcome.files["environment/Dockerfile"].content


def test_carriage_returns_of_a_patch_are_those_of_the_code(tmp_path):
    patch = diff("product.py", "a\r\nb\r\n", "a\r\nc\r\n")
    assert convert(tmp_path, **{"bug_patch.txt": patch}).files["solution/fix.patch"].content == patch.encode()


def test_bugs_come_by_their_numbers(tmp_path):
    files = bug()
    for number in ("10", "9"):
        files |= {path.replace("bugs/1/", f"bugs/{number}/"): content for path, content in bug().items()}
    files["projects/product/bugs/~$list.xlsx"] = "x"
    outcomes = make_adapter("bugsinpy").convert(write_folder(tmp_path, files))
    assert [outcome.name for outcome in outcomes] == ["product-1", "product-9", "product-10"]


INFO = bug()["projects/product/bugs/1/bug.info"]
REFUSED = [
    ("bug.info", INFO.replace(COMMIT, "main"), "wrong-field", "buggy_commit_id is 'main'"),
    ("bug.info", INFO.replace("3.8.3", "3.8.3\\nRUN evil"), "wrong-field", "python_version"),
    ("bug.info", INFO.replace("tests/test_product.py", "../../etc/passwd"), "unsafe-path", "no plain path"),
    ("bug.info", INFO.replace("tests/test_product.py", "a.py $(evil)"), "unsafe-path", "no plain path"),
    ("bug.info", INFO.replace("tests/test_product.py", ""), "no-tests", "no test_file"),
    ("bug.info", INFO + 'pythonpath="a/../../b"', "unsafe-path", "pythonpath"),
    ("bug.info", INFO + 'pythonpath="a b\x1b"', "unsafe-path", "pythonpath"),
    ("bug.info", b"\x80\x81", "unreadable", "no text in UTF-8"),
    ("bug_patch.txt", "", "wrong-patch", "is empty"),
    ("bug_patch.txt", "x", "wrong-patch", "changes no file"),
    ("bug_patch.txt", diff("tests/test_product.py", "a\n", "b\n"), "wrong-patch", "changes the test file"),
    ("run_test.sh", "\n", "no-tests", "runs no test"),
    ("run_test.sh", "make test", "unsupported-tests", "neither pytest nor unittest"),
    ("requirements.txt", "a\0b", "wrong-field", "control character"),
    ("requirements.txt", "\ufeffa".encode("utf-16-le")[:-1], "unreadable", "no text in UTF-8"),
]


@pytest.mark.parametrize(("name", "content", "reason", "said"), REFUSED)
def test_a_hostile_bug_is_refused_in_one_line(tmp_path, name, content, reason, said):
    outcome = convert(tmp_path, **{name: content})
    assert isinstance(outcome, Refused), outcome
    assert outcome.reason == reason
    assert said in outcome.why and outcome.why.isprintable()


@pytest.mark.parametrize("name", ["bug.info", "run_test.sh", "bug_patch.txt", "setup.sh"])
def test_no_link_is_followed_and_no_fifo_waited_for(tmp_path, name):
    write_folder(tmp_path, bug())
    place = tmp_path / "projects/product/bugs/1" / name
    place.unlink()
    place.symlink_to("/etc/passwd")
    (outcome,) = make_adapter("bugsinpy").convert(tmp_path)
    assert (outcome.reason, outcome.why) == ("unreadable", f"{name} is a link")
    place.unlink()
    os.mkfifo(place)
    (outcome,) = make_adapter("bugsinpy").convert(tmp_path)
    assert (outcome.reason, outcome.why) == ("unreadable", f"{name} is a FIFO")


def test_a_folder_without_projects_is_no_source(tmp_path):
    with pytest.raises(SourceError, match="upstream setup bugsinpy"):
        list(make_adapter("bugsinpy").convert(tmp_path))


@pytest.mark.parametrize(
    ("script", "runner", "selected"),
    [
        ("pytest a/b.py::test_c\r\n", "pytest", ["a/b.py::test_c"]),
        ("py.test a.py::A::test_b[x y]", None, None),
        ("pytest 'a.py::test_b[x y]'", "pytest", ["a.py::test_b[x y]"]),
        ("pytest -q -s a.py b.py\npython3 -m pytest a.py", "pytest", ["a.py", "b.py"]),
        ("tox a.py::test_b;tox a.py::test_c", "pytest", ["a.py::test_b", "a.py::test_c"]),
        ("python -m unittest -q a.b.C.d", "unittest", ["a.b.C.d"]),
        ("python -m unittest -q a.b\npytest a.py", None, None),
        ("pytest -k 'x' a.py", None, None),
        ("pytest --rootdir=/ a.py", None, None),
        ("pytest ../a.py", None, None),
        ("pytest 'a.py", None, None),
        ("pytest", None, None),
        ("# pytest a.py", None, None),
        ("pytest a.py && rm -rf /", None, None),
    ],
)
def test_commands(script, runner, selected):
    if runner is None:
        with pytest.raises(RefusalError):
            read_tests(script)
    else:
        assert read_tests(script.replace("\r", "")) == (runner, selected)
