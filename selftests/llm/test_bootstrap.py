"""Means over tasks with intervals that know of clusters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_otval.llm.bootstrap import RESAMPLES, Mean, means

DICE = np.random.default_rng(5)
VALUES = DICE.beta(0.5, 1, 60).round(2).tolist()
CLUSTERS = [f"repository-{number}" for number in DICE.integers(0, 25, 60)]


def test_every_task_counts_once():
    found = means([VALUES], CLUSTERS)[0]
    assert found.value == pytest.approx(np.mean(VALUES))
    assert (found.tasks, found.clusters, found.caveat) == (60, len(set(CLUSTERS)), "")
    assert found.low < found.value < found.high


def test_draws_are_those_of_scipy():
    """Their standard deviation is that of another implementation, and the widening that of the t distribution."""
    names = sorted(set(CLUSTERS))
    sums = np.array([sum(v for v, c in zip(VALUES, CLUSTERS, strict=True) if c == name) for name in names])
    sizes = np.array([CLUSTERS.count(name) for name in names])
    tail = stats.norm.sf(stats.t.ppf(0.975, len(names) - 1) * np.sqrt(len(names) / (len(names) - 1)))
    other = stats.bootstrap(
        (sums, sizes),
        lambda one, two, axis: one.sum(axis=axis) / two.sum(axis=axis),
        paired=True,
        vectorized=True,
        method="percentile",
        confidence_level=1 - 2 * tail,
        n_resamples=20_000,
        rng=np.random.default_rng(9),
    ).confidence_interval
    found = means([VALUES], CLUSTERS)[0]
    assert (found.low, found.high) == pytest.approx((other.low, other.high), abs=0.01)


def test_clusters_widen_an_interval():
    together = [f"repository-{number // 6}" for number in range(60)]
    values = [float(number // 6 % 2) for number in range(60)]
    clustered = means([values], together)[0]
    alone = means([values], [str(number) for number in range(60)])[0]
    assert clustered.high - clustered.low > 2 * (alone.high - alone.low)


def test_the_same_seed_gives_the_same_interval():
    assert means([VALUES], CLUSTERS) == means([VALUES], CLUSTERS)
    assert means([VALUES], CLUSTERS, seed=1) != means([VALUES], CLUSTERS)


@settings(max_examples=5, deadline=None)
@given(st.permutations(range(60)))
def test_order_and_names_do_not_matter(order):
    found = means([[VALUES[index] for index in order]], [CLUSTERS[index] for index in order])[0]
    known = means([VALUES], CLUSTERS)[0]
    assert (found.low, found.high) == pytest.approx((known.low, known.high))


def test_tasks_without_a_value_are_left_out():
    some = [value if index % 3 else None for index, value in enumerate(VALUES)]
    first, second, third = means([some, VALUES, [None] * 60], CLUSTERS)
    assert first.tasks == 40
    assert first.value == pytest.approx(np.mean([value for value in some if value is not None]))
    alone = means([VALUES], CLUSTERS)[0]
    assert (second.low, second.high) == pytest.approx((alone.low, alone.high)), "columns share their draws"
    assert third == Mean(None, None, None, 0, 0, "no task has enough attempts")


def test_one_cluster_has_no_interval():
    found = means([[0.0, 1.0]], ["a", "a"])[0]
    assert (found.value, found.low, found.high, found.clusters) == (0.5, None, None, 1)
    assert "one cluster" in found.caveat


def test_few_clusters_are_named():
    found = means([[0.0, 0.5, 1.0]], ["a", "b", "c"])[0]
    assert found.caveat == "3 clusters are few: the interval is too narrow"
    assert found.low < 0.5 < found.high


def test_nothing_solved_is_not_certain():
    found = means([[0.0] * 8], list("aabbccdd"))[0]
    assert found.low == 0.0
    assert found.high == pytest.approx(0.4899, abs=1e-4), "Wilson's 0 of 4"
    assert "alike" in found.caveat
    assert means([[1.0] * 4], list("abcd"))[0].low == pytest.approx(1 - 0.4899, abs=1e-4)


def test_clusters_of_the_same_mean_have_no_interval():
    found = means([[0.0, 1.0, 1.0, 0.0]], list("aabb"))[0]
    assert (found.value, found.low) == (0.5, None)


def test_no_columns():
    assert means([], []) == []
    assert means([[]], [])[0].tasks == 0


def test_more_clusters_than_are_drawn_at_once(monkeypatch):
    known = means([VALUES], CLUSTERS)[0]
    monkeypatch.setattr("pytest_otval.llm.bootstrap._AT_ONCE", 77 * known.clusters)
    assert RESAMPLES % 77, "the last part is smaller"
    found = means([VALUES], CLUSTERS)[0]
    assert (found.low, found.high) == pytest.approx((known.low, known.high))
