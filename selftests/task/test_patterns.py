"""Patterns of COPY and of .dockerignore."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.task.patterns import copy_pattern, ignore_pattern


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("*.txt", ["a.txt", ".txt"], ["sub/a.txt", "a.txtx"]),
        ("s?b/*", ["sub/x"], ["s/b/x", "sub/x/y"]),
        ("[a-c]", ["a", "c"], ["d", "ab"]),
        ("[^a-c]", ["d"], ["a"]),
        ("[c-a]", [], ["a", "b", "c"]),
        ("a\\*b", ["a*b"], ["axb"]),
        ("[\\]\\-]x", ["]x", "-x"], ["x"]),
        ("arr[[]0].txt", ["arr[0].txt"], ["arr0.txt"]),
        ("**", ["abc"], ["a/b"]),
        ("*a*b", ["ab", "xaxb", "aab", "abab"], ["aba", "b"]),
    ],
)
def test_file_path_match(pattern, matching, other):
    regex = copy_pattern(pattern)
    assert all(regex.fullmatch(name) for name in matching)
    assert not any(regex.fullmatch(name) for name in other)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("**", ["a", "a/b"], []),
        ("**/*.pyc", ["a.pyc", "x/y/a.pyc"], ["a.py"]),
        ("**.pyc", ["a.pyc", "x/y/a.pyc", ".pyc"], ["a.py"]),
        ("**/c", ["c", "a/b/c"], ["xc", "a/xc"]),
        ("a/**", ["a/b", "a/b/c"], ["a"]),
        ("a/**/c", ["a/c", "a/b/c", "a/b/b/c"], ["a/b", "ac", "c"]),
        ("**/a*b/**/c", ["ax/ab/c", "ab/c", "x/ab/y/c"], ["ax/c", "ab/x"]),
        ("a**b", ["ab", "ax/b"], ["axb"]),
        ("*/temp*", ["x/temp", "x/temporary"], ["temp", "x/y/temp"]),
        ("temp?", ["tempa"], ["temp", "temp/"]),
    ],
)
def test_dockerignore(pattern, matching, other):
    regex = ignore_pattern(pattern)
    assert all(regex.fullmatch(name) for name in matching)
    assert not any(regex.fullmatch(name) for name in other)


@pytest.mark.parametrize("pattern", ["[", "[a", "[]", "a\\", "[a-"])
def test_malformed_patterns(pattern):
    for compiled in (copy_pattern, ignore_pattern):
        with pytest.raises(ValueError, match="pattern"):
            compiled(pattern)


@given(st.text(alphabet="ab*?[]^-\\/"))
def test_any_pattern_compiles_or_is_refused(pattern):
    for compiled in (copy_pattern, ignore_pattern):
        try:
            compiled(pattern).fullmatch("a/b")
        except ValueError as error:
            assert "\n" not in str(error)


def plain(pattern):
    """The same without any thought of time."""
    parts = re.split(r"((?:(?<=/)|^)\*\*(?:/|$)|\*|\?)", pattern)
    words = {"*": "[^/]*", "?": "[^/]", "**": ".*", "**/": "(?:.*/)?"}
    return re.compile("".join(words.get(part, re.escape(part)) for part in parts), re.DOTALL)


COMPONENT = st.one_of(
    st.just("**"), st.text(alphabet="ab*?", min_size=1, max_size=6).filter(lambda text: "**" not in text)
)


@given(st.lists(COMPONENT, min_size=1, max_size=6), st.text(alphabet="ab/", max_size=14))
def test_stars_that_never_look_back_match_the_same(components, path):
    pattern = "/".join(components)
    assert bool(ignore_pattern(pattern).fullmatch(path)) == bool(plain(pattern).fullmatch(path))


@pytest.mark.parametrize(
    ("compiled", "pattern", "path"),
    [
        (copy_pattern, "*a" * 60 + "b", "a" * 250),
        (ignore_pattern, "**/a/" * 30 + "b", "a/" * 150),
        (ignore_pattern, "/".join(["*a*a*a*a*b"] * 20), "/".join(["a" * 100] * 20)),
    ],
)
def test_hostile_pattern_ends(compiled, pattern, path):
    assert not compiled(pattern).fullmatch(path)
