"""Rubrics are read in both forms, found in their order, and what is wrong with one is told in one line."""

import re
import tomllib
from pathlib import Path

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.judge.model import Criterion
from pytest_otval.judge.rubric import MOST_CRITERIA, own_rubric, read_rubric

OURS = """\
kind = "trace"

[[criteria]]
id = "a"
question = "Is it so?"
guidance = \"\"\"
Pass: yes.
\"\"\"
blocking = true
execution = "wrong-solution"
not_applicable = false

[[criteria]]
id = "b"
question = "And that?"
"""
HARBOR = """\
[[criteria]]
name = "typos"
description = "Whether there are any typos"
guidance = "Look closely."
"""


@pytest.fixture
def file(tmp_path):
    return tmp_path / "x.toml"


def refused(file, text):
    file.write_text(text)
    with pytest.raises(OtvalUsageError) as caught:
        read_rubric(file)
    words = str(caught.value)
    assert "\n" not in words
    assert words.startswith(f"{file}:")
    return words.removeprefix(f"{file}:")


def test_a_rubric_of_ours(file):
    file.write_text(OURS)
    rubric = read_rubric(file)
    assert (rubric.kind, rubric.source) == ("trace", str(file))
    assert rubric.criteria == (
        Criterion("a", "Is it so?", "Pass: yes.", True, "wrong-solution", False),
        Criterion("b", "And that?"),
    )


def test_a_rubric_of_harbor(file):
    file.write_text(HARBOR)
    rubric = read_rubric(file)
    assert rubric.kind == "instruction"
    assert rubric.criteria == (Criterion("typos", "Whether there are any typos", "Look closely."),)


def test_the_digest_is_that_of_what_is_asked(file, tmp_path):
    file.write_text(HARBOR)
    digest = read_rubric(file).digest
    other = tmp_path / "y.toml"
    other.write_text("# A comment\n" + HARBOR.replace("name", "id").replace("description", "question"))
    assert read_rubric(other).digest == digest
    other.write_text(HARBOR.replace("closely", "again"))
    assert read_rubric(other).digest != digest


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", " there is no criteria"),
        ("kind = ", "1: is no TOML: "),
        (f"{HARBOR}\nblokcing = true", "6: criterion 1 (typos): unknown key 'blokcing'"),
        (HARBOR.replace("description", "x"), "1: criterion 1 (typos): there is no question"),
        (HARBOR.replace("typos", "two words"), "2: criterion 1 (two words): name: String should match"),
        (f'kind = "other"\n{HARBOR}', "1: kind: Input should be 'instruction' or 'trace'"),
        (f"top = 1\n{HARBOR}", "1: unknown key 'top'"),
        (HARBOR + HARBOR, "5: there is a criterion 'typos' already"),
        (f'{OURS}execution = "no"', "16: criterion 2 (b): execution: Input should be"),
        ("criteria = []", "1: criteria: "),
        ("criteria = 3", "1: criteria: "),
        ("criteria = [3]", "1: criterion 1: it: Input should be"),
        ('kind = "trace"\n[[criteria]]\nid = "\\u001b[31m"\nquestion = ""', "3: criterion 1 (\\x1b[31m): id: "),
        ("x = " + "[" * 5000, ": is no TOML"[1:]),
        ("".join(f"[[criteria]]\nid = '{n}'\nquestion = 'q'\n" for n in range(MOST_CRITERIA + 1)), "1: criteria: "),
    ],
)
def test_what_is_wrong_is_told_in_one_line(file, text, words):
    told = refused(file, text)
    assert told.startswith(words), told


def test_a_file_that_is_none_is_refused(file, tmp_path):
    for path, data in ((tmp_path, None), (file, b"\xff\xfe"), (tmp_path / "none.toml", None)):
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(OtvalUsageError, match=re.escape(f"{path}: ")):
            read_rubric(path)


def test_the_first_place_that_has_a_rubric_wins(tmp_path):
    first, second = tmp_path / "rootdir", tmp_path / "workspace"
    second.joinpath("rubrics").mkdir(parents=True)
    (second / "rubrics" / "instruction.toml").write_text(HARBOR)
    assert [one.id for one in own_rubric("instruction", (first, second)).criteria] == ["typos"]
    assert len(own_rubric("trace", (first, second)).criteria) > 10
    first.joinpath("rubrics").mkdir(parents=True)
    (first / "rubrics" / "instruction.toml").write_text(OURS)
    with pytest.raises(OtvalUsageError, match="is of kind 'trace': write kind = \"instruction\""):
        own_rubric("instruction", (first, second))


@pytest.mark.parametrize(("kind", "count"), [("instruction", 20), ("trace", 15)])
def test_our_own_rubrics(kind, count):
    rubric = own_rubric(kind, ())
    assert len(rubric.criteria) == count
    for one in rubric.criteria:
        assert re.fullmatch(r"[a-z_]+", one.id)
        assert one.question.endswith("?")
        assert "Fail: " in one.guidance, one.id
        assert ("Not applicable: " in one.guidance) == one.not_applicable, one.id
        assert one.guidance.count("\n") < 5
    if kind == "instruction":
        assert {one.id: one.execution for one in rubric.criteria if one.execution} == {
            "weak_test": "wrong-solution",
            "brittle_test": "right-solution",
        }


def test_the_package_carries_the_rubrics_of_the_repository():
    top = Path(__file__).parents[2]
    settings = tomllib.loads((top / "pyproject.toml").read_text())
    assert "data/**/*" in settings["tool"]["setuptools"]["package-data"]["pytest_otval"]
    assert (top / "pytest_otval" / "data" / "rubrics").resolve() == top / "rubrics"
