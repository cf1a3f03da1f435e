"""Tables of tasks, datasets and models, from rows of attempts."""

import random

import pytest

from pytest_otval.llm.attempts import Attempt
from pytest_otval.llm.comparison import compare, discrimination
from pytest_otval.llm.estimates import Counts, Denominators
from pytest_otval.llm.steps import Step
from pytest_otval.llm.tables import dataset_rows, task_rows
from pytest_otval.llm.trajectory_statistics import statistics_of

OUTCOMES = {"+": {"solved": True, "reward": 1.0}, "-": {"reward": 0.0}, "x": {"valid": False}}


def attempts(task, outcomes, model="m", cluster="", **more):
    """One attempt a letter: solved, unsolved or invalid."""
    return [
        Attempt(
            "demo",
            task,
            model,
            number,
            cluster=cluster,
            prompt_tokens=100,
            seconds={"total": 10.0},
            **OUTCOMES[one],
            **more,
        )
        for number, one in enumerate(outcomes)
    ]


def test_a_task():
    (row,) = task_rows(attempts("a", "++-x", usd=0.5), planned=8)
    assert row.counts == Counts(2, 1, 1)
    assert row.denominators == Denominators(planned=8, ran=4, excluded=1, scored=3)
    assert row.with_failures.pass_at[0] == 0.5
    assert row.without_invalid.pass_at == pytest.approx((2 / 3, 1.0, 1.0))
    assert (row.rewards.count, row.rewards.mean, row.rewards.reached) == (3, pytest.approx(2 / 3), 2)
    assert row.signal == pytest.approx(1 / 3)
    assert row.mixed == pytest.approx((0, 2 / 3, 1))
    assert (row.tokens.value, row.seconds.value, row.usd.value) == (150, 15, 0.75)
    assert (row.band.name, row.cluster, row.flagged) == ("medium", "task a", 0)


def test_a_task_whose_attempts_are_all_invalid():
    (row,) = task_rows(attempts("a", "xx"))
    assert (row.with_failures.rate, row.without_invalid) == (0, None)
    assert (row.rewards, row.signal, row.band, row.tokens, row.usd, row.mixed) == (None, None, None, None, None, ())
    (dataset,) = dataset_rows(attempts("a", "xx"), [row])
    assert dataset.pass_at[0].with_failures.value == 0
    assert dataset.pass_at[0].without_invalid.value is None
    assert dataset.signal.value is None


def test_an_invalid_attempt_is_never_counted_as_solved():
    row = Attempt("demo", "a", "m", 0, solved=True, valid=False, reward=1.0)
    assert task_rows([row])[0].counts == Counts(0, 0, 1)


def test_errors_are_no_attempts_but_are_told():
    rows = [*attempts("a", "+-x"), Attempt("demo", "a", "m", 3, valid=False, reason="endpoint-failed")]
    (row,) = task_rows(rows, planned=5)
    assert [one.outcome for one in rows] == ["solved", "unsolved", "invalid", "error"]
    assert row.denominators == Denominators(planned=5, ran=4, excluded=2, scored=2, errors=1)
    assert (row.with_failures.count, row.without_invalid.count) == (3, 2)
    assert [at.k for at in dataset_rows(rows, [row])[0].pass_at] == [1, 2, 3]


def test_where_all_were_errors_nothing_is_estimated():
    rows = [Attempt("demo", "a", "m", 0, valid=False, reason="killed")]
    (found,) = dataset_rows(rows, task_rows(rows))
    assert (found.pass_at, found.denominators.ran, found.signal.value) == ((), 1, None)


def test_a_price_that_is_missing_makes_no_sum():
    rows = attempts("a", "+", usd=0.5) + attempts("a", "-")
    (row,) = task_rows(rows)
    assert row.usd is None
    assert dataset_rows(rows, [row])[0].usd is None


def test_a_dataset():
    rows = attempts("a", "++++") + attempts("b", "++--") + attempts("c", "--xx") + attempts("d", "xxxx")
    tasks = task_rows(rows)
    (found,) = dataset_rows(rows, tasks)
    assert found.denominators == Denominators(16, 16, 6, 10)
    assert [at.k for at in found.pass_at] == [1, 2, 3, 4]
    first, second = found.pass_at[:2]
    assert (first.with_failures.value, first.with_failures.tasks) == (pytest.approx(1.5 / 4), 4)
    assert (first.without_invalid.value, first.without_invalid.tasks) == (pytest.approx(0.5), 3)
    assert second.with_failures.value == pytest.approx((1 + 5 / 6) / 4)
    assert found.pass_at[2].without_invalid.tasks == 2, "two attempts say nothing of three"
    assert found.pass_all[1].with_failures.value == pytest.approx((1 + 1 / 6) / 4)
    assert found.bands == {"never": 1, "medium": 1, "always": 1}
    assert found.signal.value == pytest.approx((0 + 1 / 3 + 0) / 3)
    assert found.quantiles["tokens"] == (100,) * 5
    assert found.quantiles["seconds:total"][2] == 10


def test_order_does_not_matter():
    rows = [row for task in "abcdef" for row in attempts(task, "++-x", cluster="one" if task in "abc" else "two")]
    mixed = random.Random(0).sample(rows, len(rows))
    tasks = task_rows(mixed)
    assert tasks == task_rows(rows)
    assert dataset_rows(mixed, tasks) == dataset_rows(rows, tasks)


def test_tasks_of_one_repository_are_one_cluster():
    rows = [row for task in "abcd" for row in attempts(task, "+-", cluster="one")]
    mean = dataset_rows(rows, task_rows(rows))[0].pass_at[0].with_failures
    assert (mean.clusters, mean.low) == (1, None)


def test_models_and_datasets_stand_for_themselves():
    rows = attempts("a", "+", model="m") + attempts("a", "-", model="n") + [Attempt("other", "a", "m", 0)]
    tasks = task_rows(rows)
    assert [(row.dataset, row.model, row.counts.solved) for row in tasks] == [
        ("demo", "m", 1),
        ("demo", "n", 0),
        ("other", "m", 0),
    ]
    assert [(row.dataset, row.model) for row in dataset_rows(rows, tasks)] == [
        ("demo", "m"),
        ("demo", "n"),
        ("other", "m"),
    ]


def test_flags_finishes_and_shares():
    steps = [Step("cat /tests/x", status=1), Step("cat /tests/x", status=0), Step(thought="All tests pass.")]
    rows = attempts("a", "+", flags=("touched-tests",), finish="submitted", truncated=True)
    rows += attempts("a", "-", flags=("touched-tests",), finish="time", statistics=statistics_of(steps))
    tasks = task_rows(rows)
    (found,) = dataset_rows(rows, tasks)
    assert (tasks[0].flagged, found.flagged, found.flags) == (1, 1, {"touched-tests": 2})
    assert found.finishes == {"submitted": 1, "time": 1}
    assert found.shares["failed steps"] == pytest.approx(1 / 3)
    assert found.shares["non-zero commands"] == 0.5
    assert found.shares["attempts truncated"] == 0.5
    assert found.shares["unsolved attempts claimed"] == 1
    assert "edited files read before" not in found.shares


def test_many_attempts_show_some_k():
    rows = attempts("a", "+" * 20)
    assert [at.k for at in dataset_rows(rows, task_rows(rows))[0].pass_at] == [1, 2, 3, 4, 5, 6, 7, 8, 16, 20]


def test_no_rows():
    assert task_rows([]) == []
    assert dataset_rows([], []) == []


def test_models_compared_task_by_task():
    rows = attempts("a", "++++", "m") + attempts("b", "++--", "m") + attempts("c", "+", "m") + attempts("d", "xx", "m")
    rows += attempts("a", "++--", "n") + attempts("b", "----", "n") + attempts("d", "++", "n")
    found = compare(task_rows(rows), "m", "n")
    assert {key: one.value for key, one in found.tasks.items()} == {("demo", "a"): 0.5, ("demo", "b"): 0.5}
    assert (found.mean.value, found.mean.tasks) == (0.5, 2)
    first, second = found.pass_at[:2]
    assert (first.k, first.difference, first.first, first.second) == (1, found.mean, 0.75, 0.25)
    assert (second.difference.value, second.difference.tasks) == (pytest.approx((1 / 6 + 5 / 6) / 2), 2)
    assert compare(task_rows(rows), "m", "nobody").mean.value is None


def test_equal_differences_have_no_interval_of_a_share():
    rows = [row for task in "ab" for model in "mn" for row in attempts(task, "+" if model == "m" else "-", model)]
    for first, second, value in (("m", "n", 1), ("n", "m", -1), ("m", "m", 0)):
        mean = compare(task_rows(rows), first, second).mean
        assert (mean.value, mean.low, mean.caveat) == (value, None, "all clusters have the same mean: no interval")


def test_discrimination_within_a_dataset():
    rows = []
    for model, outcomes in zip("lmn", ("-", "+-", "+"), strict=True):
        rows += [row for task in "abc" for row in attempts(task, outcomes, model)]
    rows += (
        attempts("odd", "+", "l") + attempts("odd", "+-", "m") + attempts("odd", "-", "n") + attempts("few", "+", "l")
    )
    found = discrimination(task_rows(rows))
    assert found["demo", "odd"] < 0 < found["demo", "a"]
    assert found["demo", "few"] is None
