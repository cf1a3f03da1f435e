"""The ways in which an agent that fixed nothing was paid on a real dataset, on one task: as published, and hardened."""

import shutil

import pytest

from pytest_otval.harden.proposal import Wishes, propose
from pytest_otval.runtimes.record import Reference
from pytest_otval.task.load import load_task
from selftests.conftest import REPOSITORY

pytestmark = pytest.mark.integration

TASKS = REPOSITORY / "selftests" / "data" / "hardening" / "tasks"
ATTACKS = ("activate", "pytest-replaced", "environment-python")
"""A line in the activate script, a pytest that ends with 0, a wrapped Python."""


@pytest.fixture
def published(tmp_path):
    copy = tmp_path / "hardening" / "tasks" / "published"
    shutil.copytree(TASKS / "published", copy)
    return copy


@pytest.mark.parametrize("level", ["none", "fresh"])
def test_as_published_each_is_paid(ask_real, published, level):
    result = ask_real("adversary", load_task(published, "hardening"), isolation=level, attacks=ATTACKS)
    assert result.facts["attacks"] == dict.fromkeys(ATTACKS, "paid"), result


def test_hardened_none_is_paid_at_fresh(ask_real, published, verifier_runtime):
    """The stage itself holds that the solution is paid and doing nothing is not."""
    propose(load_task(published, "hardening"), Wishes(Reference.of(verifier_runtime))).write(published)
    assert (published / "tests" / "test.sh").read_bytes() == (TASKS / "hardened" / "tests" / "test.sh").read_bytes()
    task = load_task(published, "hardening")
    result = ask_real("adversary", task, isolation="fresh", attacks=ATTACKS)
    assert (result.reason, result.facts["attacks"]) == ("expected", dict.fromkeys(ATTACKS, "stopped"))
    assert [trial["score"] for trial in result.facts["trials"][:2]] == [1, 0]


def test_hardened_it_runs_without_a_runtime_too(ask_real, tmp_path):
    """As it does where this program does not run it: then the Python is the environment's, or the image's."""
    copy = tmp_path / "hardening" / "tasks" / "hardened"
    shutil.copytree(TASKS / "hardened", copy)
    script = copy / "tests" / "test.sh"
    task = load_task(copy, "hardening")
    assert ask_real("oracle", task).reason == "expected"
    script.write_text(script.read_text().replace("#!/bin/bash\n", "#!/bin/bash\nunset OT_PYTHON\n"))
    assert ask_real("oracle", load_task(copy, "hardening")).reason == "expected"
    assert ask_real("noop", load_task(copy, "hardening")).reason == "expected"


def test_by_the_runtimes_own_shell_a_replaced_bash_is_not_asked(ask_real, published, verifier_runtime):
    wishes = Wishes(Reference.of(verifier_runtime), own_shell=True)
    propose(load_task(published, "hardening"), wishes).write(published)
    result = ask_real("adversary", load_task(published, "hardening"), attacks=("bash-replaced",))
    assert (result.reason, result.facts["attacks"]) == ("expected", {"bash-replaced": "stopped"}), result
