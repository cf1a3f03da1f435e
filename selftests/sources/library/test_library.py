"""Patches of the library on the checks' own miniature tasks: the fault is there before and not after."""

import pytest

from pytest_otval.checks.registry import run_checks
from pytest_otval.core import Severity
from pytest_otval.sources import library
from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.library.text import REPAIRED
from pytest_otval.sources.patches import apply
from selftests.checks import tables
from selftests.checks.conftest import write_task

PATCHES = {
    "reward-lost-on-failure": library.reward_guard(),
    "reward-status-lost": library.kept_status(),
    "docker-solution-copied": library.tests_out_of_image(),
    "docker-tests-copied": library.tests_out_of_image(),
    "docker-git-history": library.no_git_history(),
    "docker-apt-no-lists": library.package_lists(),
    "docker-apt-asks": library.apt_says_yes(),
    "docker-error-hidden": library.build_errors_shown(),
    "docker-version-redirected": library.quoted_versions(),
    "docker-run-not-executable": library.run_bits(),
    "toml-timeouts-present": library.time_limits(600, 300),
    "toml-resources-absent": library.resources(1, 1024, 4096),
    "toml-name-folder": library.task_names(),
    **dict.fromkeys(REPAIRED, library.safe_repairs()),
}
FAULTS = [fault for fault in tables.faults() if fault.check in PATCHES]


def found(task):
    return {(one.check, one.path) for one in run_checks(task.task) if one.severity is not Severity.INFO}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.check}")
def test_the_fault_is_gone_or_the_patch_says_why_not(tmp_path, fault):
    write_task(tmp_path / "task", fault.edits)
    task = TaskEditor(tmp_path / "task", "data")
    patch = PATCHES[fault.check]
    if not patch.needed(task):
        # Of findings that can be repaired in several ways none is surely right.
        assert patch.id == "safe-repairs"
        return
    before, content = found(task), task.content()
    outcome = apply(task, [patch])
    if outcome.trouble:
        assert outcome.applied == []
        assert task.content() == content
        return
    assert outcome.applied == [patch.id]
    assert not patch.needed(task)
    assert found(task) <= before


def test_most_faults_are_repaired(tmp_path):
    trouble = []
    for number, fault in enumerate(FAULTS):
        write_task(tmp_path / str(number), fault.edits)
        outcome = apply(TaskEditor(tmp_path / str(number), "data"), [PATCHES[fault.check]])
        trouble += [] if outcome.applied else [(fault.check, outcome.trouble)]
    assert len(trouble) / len(FAULTS) < 0.1, trouble


@pytest.mark.parametrize("patch", {patch.id: patch for patch in PATCHES.values()}.values(), ids=lambda patch: patch.id)
def test_a_sound_task_needs_none(tmp_path, patch):
    write_task(tmp_path / "task", {"task.toml": SOUND_TOML})
    assert not patch.needed(TaskEditor(tmp_path / "task", "data"))


SOUND_TOML = """schema_version = "1.4"
[task]
name = "org/task"
[agent]
timeout_sec = 60
[verifier]
timeout_sec = 60
[environment]
cpus = 1
memory_mb = 512
storage_mb = 1024
"""
