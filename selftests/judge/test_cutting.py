"""What is too long is cut by rank and length, and never shown with more than was allowed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.judge.cutting import LEAST, Piece, cut, fit, level, some_of


def piece(name, size, rank=0):
    return Piece(name, ("x" * size,), rank)


def lengths(fitted):
    return {one.name: len(one.text) for one in fitted.documents}


def test_what_fits_is_shown_as_it_is():
    fitted = fit([piece("a", 1000), piece("b", 10, 1)], 2000)
    assert (lengths(fitted), fitted.cut, fitted.dropped) == ({"a": 1000, "b": 10}, [], [])


def test_within_a_rank_the_longest_are_cut_to_the_same_length():
    fitted = fit([piece("long", 5000), piece("short", 500), piece("longer", 50_000)], 4000)
    found = lengths(fitted)
    assert found["short"] == 500
    assert found["long"] == pytest.approx(found["longer"], abs=3) == pytest.approx(1600, abs=20)
    assert fitted.cut == ["long", "longer"]


def test_a_rank_leaves_a_third_to_those_after_it_and_no_more_than_they_need():
    found = lengths(fit([piece("first", 90_000), piece("then", 90_000, 1)], 30_000))
    assert found["first"] == pytest.approx(20_000, abs=200)
    assert found["then"] == pytest.approx(10_000, abs=200)
    found = lengths(fit([piece("first", 90_000), piece("then", 1000, 1)], 30_000))
    assert found["first"] == pytest.approx(29_000, abs=300)


def test_the_order_of_ranks_is_not_that_of_documents():
    fitted = fit([piece("data", 90_000, 2), piece("instruction", 100), piece("tests", 100, 1)], 3000)
    assert [one.name for one in fitted.documents] == ["data", "instruction", "tests"]
    assert fitted.cut == ["data"]


def test_where_there_is_no_place_for_all_the_last_ones_go():
    fitted = fit([piece(str(number), 10_000) for number in range(100)], 5000)
    assert [one.name for one in fitted.documents] == list("0123456789")
    assert fitted.dropped == [str(number) for number in range(10, 100)]
    assert all(len(one.text) > LEAST - 60 for one in fitted.documents)


def test_no_part_of_a_document_hides_another():
    parts = ("agent:\n" + "  talk\n" * 5000, "call shell:\n  rm -rf /tests", "output:\n" + "  no\n" * 5000)
    (document,) = fit([Piece("step 1", parts, 0)], 2000).documents
    assert "\ncall shell:\n  rm -rf /tests\noutput:\n  no\n" in document.text
    assert document.text.count("characters are not shown") == 2


def test_lines_behind_each_gap_are_those_of_the_whole():
    parts = ("a\n" * 500 + "one", "b\n" * 500 + "two")
    (document,) = fit([Piece("x", parts, 0)], 600).documents
    assert [document.find(one)[0] for one in ("one b", "b two")] == [501, 1001]


def test_a_cut_text_tells_how_much_is_missing():
    text, gaps = cut("a" * 1000, 260)
    assert text == "a" * 150 + "\n  [... 800 characters are not shown ...]\n  " + "a" * 50
    assert gaps == ((150 + 44, -2),)
    assert cut("a" * 1000, 100) == ("a" * 100, ())


@given(st.text("ab\n", max_size=2000), st.integers(0, 2000))
def test_a_cut_text_is_no_longer_than_it_may_be(text, limit):
    short, gaps = cut(text, limit)
    assert len(short) <= max(limit, 0)
    for place, lines in gaps:
        hidden = short[:place].count("\n") + lines
        assert text.endswith(short[place:])
        assert text[: len(text) - len(short[place:])].count("\n") == hidden


@given(st.lists(st.integers(0, 100)), st.integers(0, 1000))
def test_a_level_is_the_largest_that_fits(sizes, limit):
    def total(most):
        return sum(min(size, most) for size in sizes)

    found = level(sizes, limit)
    assert total(found) <= limit
    assert total(found) == sum(sizes) or total(found + 1) > limit


NAMES = st.text(st.characters(codec="utf-8"), max_size=30)


@given(
    st.lists(
        st.builds(
            Piece,
            NAMES,
            st.lists(st.integers(0, 3000).map("y".__mul__), min_size=1, max_size=20).map(tuple),
            st.integers(0, 3),
        ),
        max_size=20,
    ),
    st.integers(0, 20_000),
)
def test_what_is_shown_never_has_more_than_was_allowed(pieces, characters):
    fitted = fit(pieces, characters)
    assert fitted.size <= characters
    assert fitted.size >= sum(len(one.text) for one in fitted.documents)
    assert len(fitted.documents) + len(fitted.dropped) == len(pieces)


def test_of_too_many_lines_the_first_are_told_and_how_many_more_there_are():
    lines = [f"line {number}" for number in range(100)]
    assert some_of(lines, 10_000) == tuple(lines)
    assert some_of(lines, 200) == (*lines[: len(some_of(lines, 200)) - 1], f"and {101 - len(some_of(lines, 200))} more")
    assert some_of(lines, 10) == ("and 100 more",)
    assert some_of([], 10) == ()
