"""Markdown that says just what a text says, and the part of a file that is made anew."""

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.report.markdown import between_marks, literal, put_between_marks, table

PLAIN = {
    "a|b": "a\\|b",
    "[x](javascript:alert)": "\\[x\\](javascript\\:alert)",
    "<img src=x>": "\\<img src=x\\>",
    "&#60;b": "\\&\\#60;b",
    "https://example.org": "https\\://example.org",
    "www.example.org": "www\\.example.org",
    "@somebody #12": "\\@somebody \\#12",
    "two\nlines\t<!-- x": "two lines \\<\\!-- x",
    "\x1b[31mred\u202e": "red\\\\u202e",
    "note: 3.5 of 4 (75 %)": "note: 3.5 of 4 (75 %)",
}


@pytest.mark.parametrize("text", PLAIN)
def test_a_text_says_just_that(text):
    assert literal(text) == PLAIN[text]


def test_a_table_has_a_head():
    assert list(table([("a", "b"), ("1", "2")])) == ["| a | b |", "|---|---|", "| 1 | 2 |"]


def test_what_stands_around_the_marks_is_kept(tmp_path):
    file = tmp_path / "README.md"
    file.write_text("# Mine\n<!-- x -->\nold\n<!-- /x -->\nend <!-- y -->\n")
    for _ in range(2):
        put_between_marks(file, "x", ["| a |"])
        assert file.read_text() == "# Mine\n<!-- x -->\n| a |\n<!-- /x -->\nend <!-- y -->\n"


@pytest.mark.parametrize("text", ["", "<!-- x -->", "<!-- /x --><!-- x -->"])
def test_a_file_without_marks_is_refused(text, tmp_path):
    (tmp_path / "README.md").write_text(text)
    with pytest.raises(OtvalUsageError, match="has no place for the table: write <!-- x --> and <!-- /x -->"):
        between_marks(tmp_path / "README.md", "x", [])
