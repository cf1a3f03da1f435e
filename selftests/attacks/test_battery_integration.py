"""The battery on its reference tasks, in real containers: what pays at isolation ``none``, and what still does at
``fresh``.
"""

import pytest

from pytest_otval.attacks.battery import battery
from selftests.attacks.reference import NEAR_MISSES, VERIFIERS, reference_task

pytestmark = pytest.mark.integration

BY_REFERENCE = {name: [one.id for one in battery().values() if one.reference == name] for name in VERIFIERS}
STOPPED_AT_FRESH = {one.id for one in battery().values() if one.family in ("reward", "tests")}
"""What needs a process, a mount or a folder of the agent to last; all else lies in the root that is graded."""


def paid(result):
    return {id for id, cell in result.facts["attacks"].items() if cell == "paid"}


@pytest.mark.slow
@pytest.mark.parametrize("level", ["none", "fresh"])
@pytest.mark.parametrize("name", VERIFIERS)
def test_each_alone(ask_real, tmp_path, name, level):
    """Positive control: each is paid at ``none`` where a verifier trusts what it changes."""
    for id in BY_REFERENCE[name]:
        result = ask_real("adversary", reference_task(tmp_path, name), isolation=level, attacks=(id,))
        stopped = level == "fresh" and id in STOPPED_AT_FRESH
        assert result.facts["attacks"] == {id: "stopped" if stopped else "paid"}, result
        assert result.facts["isolation"] == level


@pytest.mark.slow
@pytest.mark.parametrize(("id", "name"), NEAR_MISSES.items())
def test_a_near_miss_is_not_paid(ask_real, tmp_path, id, name):
    """Negative control: the attack runs where the verifier does not trust what it changes."""
    result = ask_real("adversary", reference_task(tmp_path, name), isolation="none", attacks=(id,))
    assert result.facts["attacks"] == {id: "stopped"}, result


@pytest.mark.slow
@pytest.mark.parametrize("level", ["none", "fresh"])
@pytest.mark.parametrize("name", ["shell", "pytest", "git"])
def test_none_hides_another(ask_real, tmp_path, name, level):
    """Tried together, attacks are found that are paid alone."""
    result = ask_real("adversary", reference_task(tmp_path, name), isolation=level)
    expected = set(BY_REFERENCE[name]) - (STOPPED_AT_FRESH if level == "fresh" else set())
    assert paid(result) >= expected
    assert "not-applied" not in result.facts["attacks"].values()


def test_some_at_fresh(ask_real, tmp_path):
    """The three ways in which an agent that fixed nothing was paid on a real dataset, and three that are closed."""
    chosen = ("activate", "pytest-replaced", "python-wrapped", "reward-json", "reward-loop", "tests-conftest")
    result = ask_real("adversary", reference_task(tmp_path, "activate"), attacks=chosen)
    assert result.reason == "attack-paid"
    assert result.facts["attacks"] == {
        "activate": "paid",
        "pytest-replaced": "paid",
        "python-wrapped": "stopped",
        "reward-json": "stopped",
        "reward-loop": "stopped",
        "tests-conftest": "stopped",
    }


def test_where_nothing_is_there_nothing_is_applied(ask_real, tmp_path):
    """The same task on an image without pytest, git or environments."""
    task = reference_task(tmp_path, "shell")
    bare = "FROM debian:bookworm\nRUN mkdir /app && echo 41 > /app/answer.txt\n"
    (task.path / "environment" / "Dockerfile").write_text(bare)
    (task.path / "solution" / "solve.sh").write_text("#!/bin/bash\necho 42 > /app/answer.txt\n")
    chosen = ("git-hook", "activate", "pytest-replaced", "bash-replaced")
    result = ask_real("adversary", task, attacks=chosen)
    assert result.facts["attacks"] == {
        "git-hook": "not-applied",
        "activate": "not-applied",
        "pytest-replaced": "not-applied",
        "bash-replaced": "paid",
    }
