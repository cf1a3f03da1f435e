"""Values that tests expect, in the image."""

import pytest

from pytest_otval.checks.context import CheckContext
from pytest_otval.leaks.expected import MAX_VALUES, expected_values
from pytest_otval.task.load import load_task
from selftests.checks.conftest import write_task

VALUE = "k9-Zt4#qLw81"
TEST = f'import app\n\n\ndef test_value():\n    assert app.value() == "{VALUE}"\n'


def with_test(text=TEST, **more):
    return {"tests/test_outputs.py": text, **more}


def told(found):
    return [(one.path, one.line, one.message) for one in found if one.check == "image-has-expected"]


@pytest.mark.parametrize("content", [f"{VALUE}\n", f"a\nanswer = '{VALUE}'\n", f'x\n{{"v": "{VALUE}"}}'])
def test_the_image_has_the_value(found, content):
    ((path, line, message),) = told(found(with_test(), {"opt/notes/old.txt": content}))
    assert (path, line) == ("tests/test_outputs.py", 5)
    at = content[: content.find(VALUE)].count("\n") + 1
    assert message == f"the image has what is expected here, at /opt/notes/old.txt:{at}"


@pytest.mark.parametrize(
    ("edits", "image"),
    [
        ({}, {"opt/x.txt": f"{VALUE}0\n"}),
        ({}, {"opt/x.txt": f"_{VALUE}\n"}),
        ({}, {"opt/x.bin": "a\0b"}),
        ({"instruction.md": f"Return {VALUE}.\n"}, {"opt/x.txt": VALUE}),
        ({"instruction.md": "Find the password in /data/dump.log.\n"}, {"data/dump.log": VALUE}),
        ({"environment/data.txt": VALUE}, {"app/data.txt": VALUE}),
        ({"environment/Dockerfile": f"FROM debian:bookworm\nRUN echo '{VALUE}' > /x\n"}, {"x": VALUE}),
    ],
    ids=["longer", "part", "other", "said", "input", "copied", "made"],
)
def test_the_image_has_it_for_another_reason_or_not(found, edits, image):
    assert told(found(with_test(**edits), image)) == []


def values(tmp_path, edits):
    write_task(tmp_path / "task", edits)
    return [(one.text, one.path, one.line) for one in expected_values(CheckContext(load_task(tmp_path / "task", "d")))]


def test_where_values_are_told(tmp_path):
    text = f'EXPECTED_KEY = "{VALUE}"\nOTHER = "x1-y2-z3-w4-v5"\nx = f() == "aB3dE5gH7jK9"\n'
    edits = with_test(
        text, **{"tests/expected_output.txt": "a 1\nb 2\nc 3 x\n", "tests/data.txt": "1;2;3;4;5;6;7;8;9\n"}
    )
    assert values(tmp_path, edits) == [
        ("a 1\nb 2\nc 3 x", "tests/expected_output.txt", 1),
        (VALUE, "tests/test_outputs.py", 1),
        ("aB3dE5gH7jK9", "tests/test_outputs.py", 3),
    ]


@pytest.mark.parametrize(
    "plain",
    ["/app/some/file.txt", "https://example.org/x", "AnIdentifierOfCode", "hello there, world", "short", "=" * 40],
)
def test_what_is_in_images_by_chance_is_no_value(tmp_path, plain):
    assert values(tmp_path, with_test(f'assert f() == "{plain}"\n')) == []


def test_hostile_tests(tmp_path):
    many = "\n".join(f'assert f() == "a{n:04}-b{n:04}#c"' for n in range(500))
    assert len(values(tmp_path, with_test(many))) == MAX_VALUES
    assert values(tmp_path, with_test("assert (" * 5000)) == []
    assert values(tmp_path, with_test("x\0", **{"tests/expected.txt": b"\xff\0" * 20})) == []
