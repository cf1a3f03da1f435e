"""What a task is worth."""

from itertools import combinations
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.llm.worth import (
    BANDS,
    band,
    cost_to_solve,
    difference,
    item_total,
    mixed_groups,
    rewards_of,
    training_signal,
)


@pytest.mark.parametrize("count", range(2, 8))
def test_mixed_groups_and_signal_against_all_subsets(count):
    for solved in range(count + 1):
        outcomes = [1] * solved + [0] * (count - solved)
        mixed = mixed_groups(count, solved)
        for k in range(1, count + 1):
            groups = list(combinations(outcomes, k))
            assert mixed[k - 1] == pytest.approx(sum(len(set(group)) == 2 for group in groups) / len(groups))
        # Two attempts differ with probability 2p(1-p).
        assert training_signal(count, solved) == pytest.approx(mixed[1] / 2)


def test_signal_is_unbiased_and_needs_two_attempts():
    assert training_signal(1, 1) is None
    rate, count = 0.3, 5
    weights = [rate**c * (1 - rate) ** (count - c) * len(list(combinations(range(count), c))) for c in range(count + 1)]
    mean = sum(w * training_signal(count, c) for c, w in enumerate(weights))
    assert mean == pytest.approx(rate * (1 - rate))


def test_rewards():
    found = rewards_of([0.0, 0.5, 1.0, 1.0], threshold=0.5)
    assert (found.count, found.mean, found.reached) == (4, 0.625, 3)
    assert found.variance == pytest.approx(np.var([0.0, 0.5, 1.0, 1.0], ddof=1))
    assert rewards_of([0.5], 1.0).variance is None


@pytest.mark.parametrize("rewards", [[], [nan], [0.5, inf]])
def test_rewards_that_are_none(rewards):
    with pytest.raises(ValueError):
        rewards_of(rewards, 1.0)


def test_cost_of_a_solution():
    found = cost_to_solve(total=1000.0, count=10, solved=4)
    assert found.value == 250.0
    assert found.low < 250.0 < found.high


def test_cost_where_nothing_was_solved_is_a_lower_bound():
    found = cost_to_solve(total=1600.0, count=16, solved=0)
    assert (found.value, found.high) == (None, None)
    assert found.low == pytest.approx(100 / 0.19361, rel=1e-4)


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_band_is_one_of_those_that_are_possible(case):
    found = band(*case)
    assert found.name in BANDS
    assert {"never": "hard", "always": "easy"}.get(found.name, found.name) in found.possible


@pytest.mark.parametrize(
    ("count", "solved", "name", "possible"),
    [
        (16, 0, "never", ("hard",)),
        (4, 0, "never", ("hard", "medium")),
        (16, 3, "hard", ("hard", "medium")),
        (4, 1, "medium", ("hard", "medium")),
        (100, 50, "medium", ("medium",)),
        (4, 3, "easy", ("medium", "easy")),
        (16, 16, "always", ("easy",)),
        (1, 1, "always", ("hard", "medium", "easy")),
    ],
)
def test_bands(count, solved, name, possible):
    found = band(count, solved)
    assert (found.name, found.possible) == (name, possible)


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ((70, 56), (80, 48), 0.0524, 0.3339),
        ((10, 9), (10, 3), 0.1705, 0.8090),
        ((7, 6), (7, 2), 0.0582, 0.8062),
        ((56, 5), (29, 0), -0.0381, 0.1926),
        ((10, 0), (20, 0), -0.1611, 0.2775),
        ((10, 10), (20, 0), 0.6791, 1.0),
    ],
)
def test_difference_against_newcombe(first, second, low, high):
    """Newcombe, Interval estimation for the difference, Stat. Med. 17 (1998), table II, method 10."""
    found = difference(first, second).interval
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)
    mirrored = difference(second, first).interval
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low))


def test_item_total_is_the_correlation_with_all_other_tasks():
    rates = np.random.default_rng(3).random((5, 4))
    found = item_total(rates.tolist())
    for task in range(5):
        rest = np.delete(rates, task, axis=0).mean(axis=0)
        assert found[task] == pytest.approx(np.corrcoef(rates[task], rest)[0, 1])


def test_item_total_of_tasks_that_say_nothing():
    better = [[0.0, 0.5, 1.0], [0.1, 0.4, 0.9], [0.0, 0.2, 0.8]]
    rates = [*better[:2], [0.5, 0.5, 0.5], [0.4, None, 0.6], [1.0, 0.5, 0.0], better[2]]
    found = item_total(rates)
    assert found[2] is None, "all models do equally well"
    assert found[3] is None, "two models only"
    assert found[4] < 0 < found[0]
    assert item_total([]) == []
    assert item_total([[0.0, 0.5, 1.0]]) == [None]
    assert item_total([[], []]) == [None, None]
