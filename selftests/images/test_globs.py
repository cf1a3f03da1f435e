"""Patterns in substitutions, compared with regular expressions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.images.globs import MAX_CHARS, GlobError, replaced, without_prefix, without_suffix

VALUES = st.text(alphabet="ab*?", max_size=8)
PATTERNS = st.text(alphabet="ab*?", max_size=5)


def expression(pattern, greedy):
    star = ".*" if greedy else ".*?"
    return "".join({"*": star, "?": "."}.get(char, re.escape(char)) for char in pattern)


@given(VALUES, PATTERNS, st.booleans())
def test_prefix(value, pattern, longest):
    found = re.match(expression(pattern, longest), value)
    assert without_prefix(value, pattern, longest) == (value[found.end() :] if found else value)


@given(VALUES, PATTERNS, st.booleans())
def test_suffix(value, pattern, longest):
    backwards = re.match(expression(pattern[::-1], longest), value[::-1])
    assert without_suffix(value, pattern, longest) == (value[: len(value) - backwards.end()] if backwards else value)


@given(VALUES, PATTERNS)
def test_first_match(value, pattern):
    assert replaced(value, pattern, "<>", everywhere=False) == re.sub(expression(pattern, True), "<>", value, count=1)


@given(VALUES, PATTERNS.filter(lambda pattern: pattern.strip("*")))
def test_all_matches(value, pattern):
    assert replaced(value, pattern, "<>", everywhere=True) == re.sub(expression(pattern, True), "<>", value)


@pytest.mark.parametrize(
    ("value", "pattern", "result"), [("abc", "*", "x"), ("", "*", "x"), ("ab", "", "xaxbx"), ("a/b", "\\/", "axb")]
)
def test_all_matches_of_nothing(value, pattern, result):
    """As Go does, no match of nothing follows right behind another."""
    assert replaced(value, pattern, "x", everywhere=True) == result


@pytest.mark.parametrize(("value", "pattern"), [("a*b", "a\\*"), ("a?b", "a\\?"), ("a}b", "a\\}"), ("a\\b", "a\\\\")])
def test_escapes(value, pattern):
    assert without_prefix(value, pattern, longest=False) == "b"


@pytest.mark.parametrize("pattern", ["\\", "\\a", "x" * (MAX_CHARS + 1)])
def test_refused(pattern):
    with pytest.raises(GlobError):
        without_prefix("x", pattern, longest=False)


def test_long_ones_are_refused():
    long = "x" * (MAX_CHARS + 1)
    for call in (lambda: without_prefix(long, "x", False), lambda: replaced("x", "x", long, True)):
        with pytest.raises(GlobError):
            call()


def test_hostile_pattern_ends():
    value = "a" * MAX_CHARS
    pattern = "*a" * (MAX_CHARS // 2 - 1) + "b"
    assert without_prefix(value, pattern, longest=True) == value
    assert without_suffix(value, pattern, longest=False) == value
    assert replaced(value, pattern, "x", everywhere=True) == value
    assert replaced(value, "?", "bb", everywhere=True) == "bb" * MAX_CHARS
