"""Prose without code, and whether a text may mean a file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.checks.said import folders_of, names_file, prose

MARKDOWN = st.lists(
    st.sampled_from(["```", "~~~", "`", "``", "\n", "    ", "<!--", "-->", "word", " ", "\n\n", "\t"]), max_size=40
).map("".join)


@given(MARKDOWN)
def test_prose_keeps_every_line_and_column(text):
    left = prose(text)
    assert [len(line) for line in left.split("\n")] == [len(line) for line in text.split("\n")]
    assert all(new in (old, " ") for old, new in zip(text, left, strict=True))


def test_prose_leaves_out_code_and_comments():
    text = "see `TODO` and ``a`TODO``\n```sh\nTODO\n```\nTODO <!-- TODO\n -->\n\n    TODO\n\n* TODO\n"
    assert [line.strip() for line in prose(text).split("\n") if "TODO" in line] == ["TODO", "* TODO"]


@pytest.mark.parametrize(
    "text",
    [
        "/app/out/a.txt",
        "write a.txt.",
        "`out/a.txt`",
        "./a.txt",
        "an A file",
        "*.txt",
        "<id>.txt",
        "{name}.txt",
        "~/a.txt",
    ],
)
def test_what_may_mean_a_file(text):
    assert names_file(text, "/app/out/a.txt")


@pytest.mark.parametrize("text", ["", "/out/a.txt", "/app/a.txt", "data.txt", "aa.txt", "a_b.txt", "b.json"])
def test_what_means_another_file(text):
    assert not names_file(text, "/app/out/a.txt")


def test_folders_of_a_name():
    assert folders_of("/a/b/x.txt, c/x.txt, x.txt, /x.txt and /a/xx.txt", "x.txt") == ["/a/b", "/"]
