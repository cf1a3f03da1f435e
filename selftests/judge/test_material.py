"""A quote is found where it stands, with its line, and nowhere else."""

from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.judge.cutting import cut
from pytest_otval.judge.material import Document, Material, locate
from pytest_otval.judge.model import Evidence

SCRIPT = Document("tests/test.sh", "#!/bin/bash\nif true; then\n    echo 1 \\\n      > /logs/verifier/reward.txt\nfi\n")
README = Document("instruction.md", "Write 42 into answer.txt.\n\nThen   stop.\n")
BOTH = Material((README, SCRIPT))


def test_a_quote_is_found_in_the_document_that_is_named():
    assert locate(BOTH, Evidence("tests/test.sh", "if true; then")) == Evidence("tests/test.sh", "if true; then", 2)


def test_a_quote_is_found_in_another_document_than_the_one_that_is_named():
    assert locate(BOTH, Evidence("tests/other.sh", "Write 42")) == Evidence("instruction.md", "Write 42", 1)


def test_the_document_that_is_named_comes_first():
    twice = Material((Document("a", "the same"), Document("b", "\nthe same")))
    assert locate(twice, Evidence(" b", "the same")) == Evidence("b", "the same", 2)


def test_blanks_and_line_ends_do_not_matter_and_the_words_are_those_of_the_document():
    found = locate(BOTH, Evidence("tests/test.sh", " echo 1 \\ > /logs"))
    assert found == Evidence("tests/test.sh", "echo 1 \\\n      > /logs", 3)


def test_a_quote_may_begin_and_end_within_words():
    assert locate(BOTH, Evidence("", "rite 42 into ans")) == Evidence("instruction.md", "rite 42 into ans", 1)


def test_what_stands_nowhere_is_not_found():
    assert locate(BOTH, Evidence("instruction.md", "Write 43 into answer.txt")) is None
    assert locate(BOTH, Evidence("instruction.md", "write 42")) is None
    assert locate(Material(()), Evidence("instruction.md", "Write 42")) is None


def test_a_quote_that_stands_in_any_text_is_none():
    assert [locate(BOTH, Evidence("instruction.md", quote)) for quote in ("", "  ", "t", "the n"[:3])] == [None] * 4


def test_lines_behind_a_cut_are_those_of_the_whole_document():
    whole = "one\ntwo\n" + "x\n" * 500 + "last but one\nlast\n"
    text, gaps = cut(whole, 200)
    document = Document("log", text, gaps)
    assert locate(Material((document,)), Evidence("log", "last but one")) == Evidence("log", "last but one", 503)
    assert document.find("two x x") == (2, "two\nx\nx")


@given(st.text(), st.data())
def test_any_piece_of_a_text_is_found_in_its_line(text, data):
    start = data.draw(st.integers(0, len(text)))
    piece = text[start : data.draw(st.integers(start, len(text)))]
    if len("".join(piece.split())) < 4:
        return
    found = locate(Material((Document("x", text),)), Evidence("x", piece))
    assert found.quote.split() == piece.split()
    assert found.line <= text.count("\n", 0, start + len(piece) - len(piece.lstrip())) + 1


@given(st.text(), st.text())
def test_no_quote_makes_it_fail(text, quote):
    found = locate(Material((Document("x", text, ((1, 1),)),)), Evidence("x", quote))
    assert found is None or " ".join(found.quote.split()) == " ".join(quote.split())
