"""``-n auto`` follows the node's budget, where tasks are selected."""

import os

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture
def small(project):
    """A profile that grants one core."""
    (project.workspace / "clusters").mkdir()
    (project.workspace / "clusters" / "small.toml").write_text("[budget]\ncpus = 1\n")
    project.dataset(tasks={"a": {}, "b": {}})
    project.pytester.makepyfile(test_plain="def test_one(): pass\n")
    return project


def workers(outcome):
    """Return how many workers a run had."""
    (line,) = [line for line in outcome.lines if line.startswith(("1 worker", "2 worker", "3 worker"))]
    return int(line.split()[0])


def test_budget_of_the_profile(small):
    outcome = small.process("-n", "auto", "--otval-cluster=small", "datasets/demo")
    assert (outcome.status, workers(outcome)) == (0, 1)


def test_an_environment_variable_wins(small):
    outcome = small.process("-n", "auto", "--otval-cluster=small", "datasets/demo", PYTEST_XDIST_AUTO_NUM_WORKERS="2")
    assert (outcome.status, workers(outcome)) == (0, 2)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core gives one worker in any case")
def test_runs_without_tasks_are_left_to_xdist(small):
    outcome = small.process("-n", "logical", "--maxprocesses=2", "--otval-cluster=small", "test_plain.py")
    assert (outcome.status, workers(outcome)) == (0, 2)


def test_a_wrong_argument_is_told_once(small):
    outcome = small.process("-n", "auto", "datasets/demo/tasks/nothing")
    assert outcome.refusal.startswith("datasets/demo/tasks/nothing: demo has no task 'nothing'")
