"""What a task wrote cannot steer a terminal or the direction of reading."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.report.text import clean, last_line, one_line


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x1b[2J", "\\x1b[2J"),
        ("10 %\r20 %\r\n", "10 %\n20 %\n"),
        ("a\u202eb\u2066c\u2028d", "a\\u202eb\\u2066c\\u2028d"),
        ("\x9b31m\x00", "\\x9b31m\\x00"),
        ("\ud800 \U000e0041", "\\ud800 \\U000e0041"),
        ("tab\tand\nline stay", "tab\tand\nline stay"),
        ("größer, 日本語, 🙂", "größer, 日本語, 🙂"),
    ],
)
def test_clean(given, shown):
    assert clean(given) == shown


@given(st.text(st.characters(codec=None)))
def test_nothing_that_steers_is_left(text):
    shown = clean(text)
    shown.encode()
    left = {unicodedata.category(letter) for letter in shown if letter not in "\t\n"}
    assert left.isdisjoint({"Cc", "Cs", "Zl", "Zp"})
    assert {unicodedata.bidirectional(letter) for letter in shown}.isdisjoint(
        {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    )
    assert clean(shown) == shown


@given(st.text(), st.integers(1, 50))
def test_one_line_is_one_line_and_not_longer(text, most):
    line = one_line(text, most)
    assert len(line) <= most and len(line.splitlines()) <= 1


def test_a_cut_is_shown():
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("abcd", 4) == "abcd"


def test_the_last_line_is_not_blank():
    assert last_line("one\ntwo \n \n\n") == "two "
    assert last_line(" \n") == ""
