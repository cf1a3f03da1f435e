"""Comments that allow a finding: what they say and which lines they cover."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.checks.directives import MAX_DIRECTIVES, Directive, directives


def said(text, path="tests/test.sh"):
    return [(one.check, one.reason, one.line) for one in directives(path, text)]


def only(text, path="tests/test.sh") -> Directive:
    (one,) = directives(path, text)
    return one


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# otval: allow a-b because it is so", [("a-b", "it is so", 1)]),
        ("x = 1  #otval:allow a because y", [("a", "y", 1)]),
        ("// otval: allow a, b because y", [("a", "y", 1), ("b", "y", 1)]),
        ("/* otval: allow a because y */ int x;", [("a", "y", 1)]),
        ("\n<!-- otval: allow a because y -->", [("a", "y", 2)]),
        ("# otval: allow a because it is -- after all -- so", [("a", "it is -- after all -- so", 1)]),
        ("# otval: allow a because", [("a", "", 1)]),
        ("# otval: allow a", [("a", "", 1)]),
        ("# otval: allow", [("", "", 1)]),
        ("# otval: allow a since it is so", [("", "", 1)]),
        ("# otval: allowed a because y", []),
        ("# hotval: allow a because y", []),
        ("otval: allow a because y", []),
    ],
)
def test_what_a_comment_says(text, expected):
    assert said(text) == expected


def test_in_markdown_only_a_comment_counts():
    assert said("# otval: allow a because y", "instruction.md") == []
    assert said("<!-- otval: allow a because y -->", "instruction.md") == [("a", "y", 1)]


@pytest.mark.parametrize(
    ("text", "covered", "not_covered"),
    [
        ("set -e\ncurl x  # otval: allow a because y\nwget x\n", {2}, {1, 3, None}),
        ("set -e\n# otval: allow a because y\ncurl x\nwget x\n", {2, 3}, {1, 4, None}),
        ("set -e\n# otval: allow a because y\n# otval: allow b because y\ncurl x\n", {4}, {1, 3, None}),
        ("#!/bin/sh\n# A comment.\n# otval: allow a because y\nset -e\n", {1, 3, 4, None}, {2, 5}),
        ("# otval: allow a because y", {1, None}, {3}),
    ],
)
def test_which_lines_are_covered(text, covered, not_covered):
    first = next(directives("tests/test.sh", text))
    assert {line for line in covered | not_covered if first.covers(line)} == covered


def test_many_of_them_are_bounded():
    text = "# otval: allow a because y\n" * (MAX_DIRECTIVES + 50)
    assert len(said(text)) == MAX_DIRECTIVES


@given(st.text(alphabet="#/*-;<!> \notval:alowbecus,\r\x00\u2028", max_size=200))
def test_no_text_is_too_strange(text):
    for one in directives("a.md", text) or directives("a.py", text):
        assert 1 <= one.line <= text.count("\n") + 1
