"""Patches of task.toml and of files as such: comments and all else stay."""

import pytest

from pytest_otval.sources import library
from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.patches import apply
from selftests.checks.conftest import write_task

TOML = """\
schema_version = "1.4" # the newest
[agent]
timeout_sec = {agent} # seconds
[verifier]
timeout_sec = {verifier}
"""
STEPS = TOML + '[[steps]]\nname = "one"\n[steps.agent]\ntimeout_sec = 5 # short\n'


@pytest.fixture
def task(tmp_path):
    def made(**edits):
        write_task(tmp_path / "task", edits)
        return TaskEditor(tmp_path / "task", "data")

    return made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TOML.format(agent=60, verifier=900), TOML.format(agent=120, verifier=900)),
        (TOML.format(agent=120, verifier="30.0"), TOML.format(agent=120, verifier=60)),
        (TOML.format(agent=500, verifier=60), None),
        (TOML.format(agent='"soon"', verifier=0), None),
        ("agent = 3\nsteps = [1]\n", None),
        ("no toml", None),
        (
            STEPS.format(agent=500, verifier=60),
            STEPS.format(agent=500, verifier=60).replace("= 5 #", "= 120 #"),
        ),
    ],
)
def test_limits_that_are_too_short_are_raised(task, before, after):
    editor = task(**{"task.toml": before})
    outcome = apply(editor, [library.least_limits(120, 60)])
    assert (outcome.applied, outcome.trouble) == (["least-limits"] if after else [], [])
    assert editor.text("task.toml").startswith(after or before)


@pytest.mark.parametrize(
    ("patch", "added"),
    [
        (library.time_limits(600, 300), "timeout_sec = 600"),
        (library.resources(2, 1024, 4096), "memory_mb = 1024"),
    ],
)
def test_what_is_absent_is_added_and_comments_stay(task, patch, added):
    editor = task(**{"task.toml": '# mine\nschema_version = "1.4" # v\n[environment] # e\nbuild_timeout_sec = 9 # b\n'})
    assert apply(editor, [patch]).applied == [patch.id]
    text = editor.text("task.toml")
    assert added in text
    assert all(comment in text for comment in ("# mine", "# v", "# e", "# b"))


def test_scripts_that_a_trial_starts_become_executable(task):
    editor = task(
        **{"tests/test.sh": ("0644", "#!/bin/bash\ntrue\n"), "solution/solve.sh": ("0644", "no first line\n")}
    )
    assert apply(editor, [library.executable_scripts()]).applied == ["executable-scripts"]
    assert editor.is_executable("tests/test.sh")
    assert not editor.is_executable("solution/solve.sh")
    assert apply(editor, [library.executable_scripts()]).applied == []


def test_a_script_that_is_a_link_stays_one(task, tmp_path):
    (tmp_path / "outside").write_text("#!/bin/bash\n")
    editor = task(**{"tests/test.sh": ("link", str(tmp_path / "outside"))})
    assert apply(editor, [library.executable_scripts(), library.safe_repairs(), library.fresh_rewards()]).applied == []
    assert not (tmp_path / "outside").stat().st_mode & 0o100
