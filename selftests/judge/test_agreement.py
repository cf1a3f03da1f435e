"""Kappa, against published examples."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.judge.agreement import fleiss_kappa

DIAGNOSES = """
00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031
00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006
"""
"""Fleiss, Measuring nominal scale agreement among many raters, Psychological Bulletin 76 (1971), table 1: how many of
six psychiatrists gave each of 30 patients each of five diagnoses."""

FOURTEEN = [
    (0, 0, 0, 0, 14),
    (0, 2, 6, 4, 2),
    (0, 0, 3, 5, 6),
    (0, 3, 9, 2, 0),
    (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0),
    (3, 2, 6, 3, 0),
    (2, 5, 3, 2, 2),
    (6, 5, 2, 1, 0),
    (0, 2, 2, 3, 7),
]
"""The worked example of Wikipedia's article on Fleiss' kappa."""

VOTES = st.integers(2, 5).flatmap(
    lambda size: st.lists(st.lists(st.sampled_from("pfnu"), min_size=size, max_size=size), max_size=12)
)


def spread(counts):
    return [kind for kind, count in enumerate(counts) for _ in range(count)]


def test_the_diagnoses_of_fleiss():
    votes = [spread(map(int, row)) for row in DIAGNOSES.split()]
    assert len(votes) == 30
    assert fleiss_kappa(votes) == pytest.approx(0.430, abs=0.0005)


def test_a_worked_example():
    assert fleiss_kappa([spread(row) for row in FOURTEEN]) == pytest.approx(0.210, abs=0.0005)


def test_the_ends():
    assert fleiss_kappa([["pass", "pass"], ["fail", "fail"]]) == 1
    assert fleiss_kappa([["pass", "fail"], ["fail", "pass"]]) == -1


@pytest.mark.parametrize("votes", [[], [["pass", "pass"]], [["fail"] * 3] * 4])
def test_it_is_undefined_where_nothing_differs(votes):
    assert fleiss_kappa(votes) is None


@pytest.mark.parametrize("votes", [[["pass"]], [[]], [["pass", "fail"], ["pass"] * 3]])
def test_votes_that_cannot_be_compared_are_refused(votes):
    with pytest.raises(ValueError, match="same number"):
        fleiss_kappa(votes)


@given(VOTES)
def test_it_is_a_share_and_does_not_depend_on_order(votes):
    kappa = fleiss_kappa(votes)
    assert kappa is None or -1 <= kappa <= 1 + 1e-12
    again = fleiss_kappa([sorted(one) for one in reversed(votes)])
    assert again == (None if kappa is None else pytest.approx(kappa))
