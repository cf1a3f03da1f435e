"""Expansion of variables in Dockerfile words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.images.expand import ExpansionError, expand

VARIABLES = {"A": "1", "EMPTY": "", "P": "/bin:/usr"}


@pytest.mark.parametrize(
    ("word", "result"),
    [
        ("a$A/b", "a1/b"),
        ("${A}b", "1b"),
        ("$Ab", ""),
        ("${NONE:-x}${EMPTY:-y}${A:-z}", "xy1"),
        ("${NONE-x}${EMPTY-y}", "x"),
        ("${A:+x}${EMPTY:+y}${NONE:+z}${EMPTY+w}", "xw"),
        ("${NONE:-${A}2}", "12"),
        ("${NONE:-a'}'b}", "a}b"),
        ("${A:?no}", "1"),
        ("'$A'\"$A\"", "$A1"),
        ("\\$A", "$A"),
        ('"\\$A \\" \\n"', '$A " \\n'),
        ("a\\ b", "a b"),
        ("$P:/x", "/bin:/usr:/x"),
        ("cost $ 5$", "cost $ 5$"),
        ("tail\\", "tail"),
        ("$10x$@y$.", "xy$."),
        ("${P#*:}${P##*:}${P%:*}", "/usr/usr/bin"),
        ("${P/usr/opt}${P//[a-z]/-}", "/bin:/opt/bin:/usr"),
        ("${P//\\//_}", "_bin:_usr"),
    ],
)
def test_expand(word, result):
    assert expand(word, VARIABLES) == result


def test_escape_can_be_a_backtick():
    assert expand("C:\\x `$A $A", VARIABLES, escape="`") == "C:\\x $A 1"


def test_heredoc_bodies_keep_quotes():
    assert expand("'$A' \"x\" \\$A \\\\ \\n", VARIABLES, keep_quotes=True) == "'1' \"x\" $A \\ n"


@pytest.mark.parametrize(
    "word",
    ["'a", '"a', "${A", "${A:-x", "${", "${A=x}", "${A:#x}", "${A/x}", "${A:-" * 5000, "${NONE:?needed}", "${A:"],
)
def test_refused(word):
    with pytest.raises(ExpansionError):
        expand(word, VARIABLES)


def test_variables_that_grow_are_refused():
    value = "x" * 1000
    for _ in range(20):
        try:
            value = expand("$V$V$V$V", {"V": value})
        except ExpansionError as error:
            assert "MiB" in str(error)
            return
    raise AssertionError(len(value))


@given(st.text(alphabet="$A{}:-+?#%/*'\"\\ x"))
def test_any_word_is_expanded_or_refused(word):
    try:
        expand(word, VARIABLES)
    except ExpansionError as error:
        assert "\n" not in str(error)


@given(st.text(alphabet="abc/.: _-="))
def test_plain_words_stay(word):
    assert expand(word, VARIABLES) == word
