"""pass@k, pass^k and intervals, against enumeration, exact arithmetic and what others published."""

from fractions import Fraction
from itertools import combinations
from math import comb, exp, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_otval.llm.estimates import Counts, Denominators, beta, denominators, estimate, pass_all, pass_at, wilson

SIZES = (1, 4, 8, 16, 64)
Z = stats.norm.ppf(0.975)


@st.composite
def attempts(draw):
    count = draw(st.integers(1, 60))
    return count, draw(st.integers(0, count))


@pytest.mark.parametrize("count", range(1, 9))
def test_against_all_subsets(count):
    for solved in range(count + 1):
        outcomes = [True] * solved + [False] * (count - solved)
        for k in range(1, count + 1):
            groups = list(combinations(outcomes, k))
            assert pass_at(count, solved)[k - 1] == sum(map(any, groups)) / len(groups)
            assert pass_all(count, solved)[k - 1] == sum(map(all, groups)) / len(groups)


@pytest.mark.parametrize(("count", "solved"), [(100, 7), (1000, 1), (10_000, 1), (10_000, 3), (10_000, 5000)])
def test_exact_for_many_attempts(count, solved):
    some, every = pass_at(count, solved), pass_all(count, solved)
    for k in (1, 2, 10, count // 3, count - solved, count):
        assert some[k - 1] == float(1 - Fraction(comb(count - solved, k), comb(count, k)))
        assert every[k - 1] == float(Fraction(comb(solved, k), comb(count, k)))


def test_agrees_with_the_product_that_was_published():
    """Chen et al. 2021, figure 3, compute 1 - prod(1 - k / i) for i from n-c+1 to n."""
    for count, solved, k in ((200, 1, 100), (200, 17, 10), (200, 150, 1), (200, 0, 100)):
        product = 1.0 if solved > count - k else 1 - np.prod(1 - k / np.arange(count - solved + 1, count + 1))
        assert pass_at(count, solved)[k - 1] == pytest.approx(product, abs=1e-12)


def test_is_the_hypergeometric_distribution():
    for k in range(1, 17):
        assert pass_at(16, 5)[k - 1] == pytest.approx(stats.hypergeom.sf(0, 16, 5, k))


@given(attempts())
def test_pass_at_k_is_within_bounds_and_monotone(case):
    count, solved = case
    some, every = pass_at(count, solved), pass_all(count, solved)
    assert len(some) == len(every) == count
    assert some[0] == every[0] == solved / count
    assert some[-1] == (solved > 0)
    assert every[-1] == (solved == count)
    assert all(0 <= one <= 1 for one in some + every)
    assert list(some) == sorted(some)
    assert list(every) == sorted(every, reverse=True)
    if solved < count:
        assert all(map(float.__le__, some, pass_at(count, solved + 1)))
        assert all(map(float.__le__, every, pass_all(count, solved + 1)))


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_brackets_contain_each_other(solved, unsolved, invalid):
    counts = Counts(solved, unsolved, invalid)
    lower, upper = counts.with_failures, counts.without_invalid
    assert (lower is None, upper is None) == (solved + unsolved + invalid == 0, solved + unsolved == 0)
    if upper is None:
        return
    assert all(map(float.__le__, lower.pass_at, upper.pass_at))
    assert all(map(float.__le__, lower.pass_all, upper.pass_all))
    assert lower.wilson.low <= upper.wilson.low + 1e-12
    assert lower.wilson.high <= upper.wilson.high + 1e-12
    if invalid == 0:
        assert lower == upper


def test_two_passes_and_two_crashes_are_no_certain_solution():
    counts = Counts(solved=2, unsolved=0, invalid=2)
    assert counts.with_failures.pass_at == (0.5, 5 / 6, 1.0, 1.0)
    assert counts.without_invalid.pass_at == (1.0, 1.0)


def test_published_denominators():
    """238 solved of 405 that gave an answer and 445 that ran."""
    counts = Counts(238, 405 - 238, 40)
    assert counts.with_failures.rate == pytest.approx(0.535, abs=5e-4)
    assert counts.without_invalid.rate == pytest.approx(0.588, abs=5e-4)
    assert denominators(counts, planned=450) == Denominators(planned=450, ran=445, excluded=40, scored=405)
    assert denominators(counts).planned == 445


def test_what_none_and_all_still_allow():
    assert estimate(16, 0).still_allows == "0 of 16 still allows a rate up to 19 %"
    assert estimate(16, 16).still_allows == "16 of 16 still allows a rate down to 81 %"
    assert estimate(10_000, 0).still_allows == "0 of 10000 still allows a rate up to 0.038 %"
    assert estimate(10_000, 10_000).still_allows == "10000 of 10000 still allows a rate down to 99.962 %"
    assert estimate(16, 1).still_allows == ""
    assert estimate(0, 0) is None


@pytest.mark.parametrize("case", [(1, 2), (-1, 0), (3, -1)])
def test_impossible_counts(case):
    with pytest.raises(ValueError):
        pass_at(*case)


@pytest.mark.parametrize(
    ("solved", "count", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_against_newcombe(solved, count, low, high):
    """Newcombe, Two-sided confidence intervals for the single proportion, Stat. Med. 17 (1998), table I, method 3."""
    found = wilson(count, solved)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


@given(attempts())
def test_intervals_hold_the_rate_and_are_symmetric(case):
    count, solved = case
    for interval in (wilson, beta):
        found, mirrored = interval(count, solved), interval(count, count - solved)
        assert 0 <= found.low < found.high <= 1
        assert found.low == pytest.approx(1 - mirrored.high)
    assert wilson(count, solved).low <= solved / count <= wilson(count, solved).high


def coverage(count, rates, interval):
    """Exact: the probability, for each rate, of counts whose interval holds it."""
    ends = [interval(count, solved) for solved in range(count + 1)]
    holds = np.array([(end.low <= rates) & (rates <= end.high) for end in ends])
    return (stats.binom.pmf(np.arange(count + 1)[:, None], count, rates) * holds).sum(axis=0)


def mean_coverage(count, interval):
    """Over rates that are drawn evenly from 0 to 1: of each count the mass of its likelihood within the interval."""
    ends = [(solved, interval(count, solved)) for solved in range(count + 1)]
    parts = [np.diff(stats.beta.cdf((end.low, end.high), c + 1, count - c + 1))[0] for c, end in ends]
    return sum(parts) / (count + 1)


def least_coverage(count):
    """Coverage jumps at the ends of intervals alone: the least is right beside one of them."""
    ends = np.array([end for c in range(count + 1) for end in (wilson(count, c).low, wilson(count, c).high)])
    beside = np.concatenate((ends - 1e-9, ends + 1e-9))
    return coverage(count, beside[(beside > 0) & (beside < 1)], wilson).min()


@pytest.mark.parametrize("count", SIZES)
def test_wilson_covers_as_the_score_test_accepts(count):
    """The curve of Brown, Cai and DasGupta 2001, section 3.1.1, from its definition: |x - np| <= z sqrt(np(1-p))."""
    rates = np.linspace(0.0005, 0.9995, 1999)
    counts = np.arange(count + 1)[:, None]
    accepted = np.abs(counts - count * rates) <= Z * np.sqrt(count * rates * (1 - rates))
    curve = (stats.binom.pmf(counts, count, rates) * accepted).sum(axis=0)
    assert coverage(count, rates, wilson) == pytest.approx(curve, abs=1e-12)


MEAN_COVERAGE = {5: 0.955, 10: 0.954, 20: 0.953, 30: 0.952, 50: 0.952, 100: 0.951}


@pytest.mark.parametrize("count", MEAN_COVERAGE)
def test_mean_coverage_of_wilson(count):
    """Over rates drawn evenly: a little more than 95 %, as Agresti and Coull (1998) say of score intervals."""
    assert mean_coverage(count, wilson) == pytest.approx(MEAN_COVERAGE[count], abs=6e-4)


def test_least_coverage_of_wilson_is_the_published_one():
    """It falls to 0.838 near p = 0.18 / n as n grows (Agresti and Coull 1998; Brown, Cai and DasGupta 2001).

    There 1 of n no longer holds the rate, and what is left is the probability of 0: exp(-0.1765) for a Poisson number.
    """
    root = (2 + Z**2 - sqrt((2 + Z**2) ** 2 - 4)) / 2
    assert (round(root, 2), round(exp(-root), 3)) == (0.18, 0.838)
    assert least_coverage(200) == pytest.approx(exp(-root), abs=5e-4)
    found = {count: round(float(least_coverage(count)), 3) for count in SIZES}
    assert found == {1: 0.793, 4: 0.830, 8: 0.834, 16: 0.836, 64: 0.838}
    assert 1 - wilson(1, 1).low == pytest.approx(least_coverage(1))


@pytest.mark.parametrize("count", SIZES)
def test_beta_covers_95_percent_of_rates_drawn_evenly(count):
    assert mean_coverage(count, beta) == pytest.approx(0.95, abs=1e-9)
    rates = (np.arange(20_000) + 0.5) / 20_000
    assert coverage(count, rates, beta).mean() == pytest.approx(0.95, abs=1e-3)


@settings(max_examples=20)
@given(st.integers(1, 2000))
def test_beta_of_none_is_the_known_formula(count):
    assert beta(count, 0).high == pytest.approx(1 - 0.025 ** (1 / (count + 1)))
