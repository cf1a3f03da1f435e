"""Rewards of patched scripts: each script is run by a real shell, with tests that pass and tests that fail."""

import os
import subprocess

import pytest

from pytest_otval.sources import library
from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.library.trap import with_floor
from pytest_otval.sources.patches import apply, in_order
from pytest_otval.sources.scripts import ScriptEdit
from selftests.checks.conftest import write_task

BY_STATUS = "if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi\n"
GIVES_ONE = "echo 1 > /logs/verifier/reward.txt\n"
LOST = {
    "set -e": f"set -e\npytest /tests/test_outputs.py\n{BY_STATUS}",
    "set -euo pipefail": f"set -euo pipefail\npytest /tests/test_outputs.py\n{BY_STATUS}",
    "exit in the middle": f"pytest /tests/test_outputs.py || exit 1\n{GIVES_ONE}",
    "exit in a function": f"die() {{ exit 3; }}\npytest /tests/test_outputs.py || die\n{GIVES_ONE}",
    "own trap": f"trap 'rm -f /tmp/x' EXIT\nset -e\npytest /tests/test_outputs.py\n{GIVES_ONE}",
    "own trap that fails": f"set -e\ntrap 'false; echo never' EXIT\npytest /tests/test_outputs.py\n{GIVES_ONE}",
    "own trap that ends the script": f"trap 'exit 7' EXIT\nset -e\npytest /tests/test_outputs.py\n{GIVES_ONE}",
    "own trap, in a function": "end() { echo bye; exit 1; }\ntrap end EXIT\n"
    f"set -e\npytest /tests/test_outputs.py\n{GIVES_ONE}",
    "own trap, in double quotes": 'D=/tmp/x\ntrap "rm -rf $D;" EXIT INT\n'
    f"set -e\npytest /tests/test_outputs.py\n{GIVES_ONE}",
    "own trap that ends in a comment": f"trap 'true # done' 0\nset -e\npytest /tests/test_outputs.py\n{GIVES_ONE}",
    "a trap taken back": f"trap - EXIT\nset -e\npytest /tests/test_outputs.py\n{GIVES_ONE}",
    "a trap of a subshell": f"(trap 'echo inner' EXIT; true)\nset -e\npytest /tests/test_outputs.py\n{GIVES_ONE}",
    "exec": f'set -e\n[ -n "$FAST" ] && exec true\npytest /tests/test_outputs.py\n{GIVES_ONE}',
    "exec at the end": f"set -e\npytest /tests/test_outputs.py\n{GIVES_ONE}exec env A=1 true\n",
    "exec of a log": f"exec 2>&1\nset -e\npytest /tests/test_outputs.py\n{GIVES_ONE}",
}


@pytest.fixture
def run(tmp_path):
    """Run a test script with tests that end with a status, and return the rewards that lie there afterwards."""

    def run(text, status, **environment):
        logs, tools = tmp_path / "logs", tmp_path / "tools"
        for folder in (logs, tools):
            folder.mkdir(exist_ok=True)
        (logs / "reward.txt").write_text("stale")
        (tools / "pytest").write_text(f"#!/bin/sh\nexit {status}\n")
        (tools / "pytest").chmod(0o755)
        script = tmp_path / "test.sh"
        script.write_text(text.replace("/logs/verifier", str(logs)))
        script.chmod(0o755)
        path = f"{tools}:{os.environ['PATH']}"
        subprocess.run([str(script)], check=False, cwd=tmp_path, env={"PATH": path, **environment}, capture_output=True)
        return {one.name: one.read_text().strip() for one in sorted(logs.iterdir())}

    return run


@pytest.fixture
def task(tmp_path):
    def made(text, **edits):
        write_task(tmp_path / "task", {"tests/test.sh": text, **edits})
        return TaskEditor(tmp_path / "task", "data")

    return made


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh"])
@pytest.mark.parametrize("shape", LOST)
def test_a_lost_reward_is_0_and_a_given_one_stays(task, run, shape, shell):
    if "pipefail" in shape and shell == "/bin/sh":
        shell = "/usr/bin/env bash"
    editor = task(f"#!{shell}\n{LOST[shape]}")
    outcome = apply(editor, [library.reward_guard()])
    assert (outcome.applied, outcome.trouble) == (["reward-guard"], [])
    text = editor.text("tests/test.sh")
    assert run(text, 0) == {"reward.txt": "1"}
    assert run(text, 1) == {"reward.txt": "0"}


def test_without_it_the_reward_is_what_lay_there(task, run):
    """As one published repair did: `set -euo pipefail`, and a look at the status of what has ended the script."""
    assert run(f"#!/bin/bash\n{LOST['set -euo pipefail']}", 1) == {"reward.txt": "stale"}


def test_a_program_that_takes_the_shells_place_leaves_its_status_and_a_reward(task, run, tmp_path):
    editor = task(f"#!/bin/bash\n{LOST['exec']}")
    apply(editor, [library.reward_guard()])
    assert run(editor.text("tests/test.sh"), 0, FAST="1") == {"reward.txt": "0"}


def test_a_traps_own_reward_is_not_replaced(task, run):
    action = "[ -f /logs/verifier/reward.txt ] || echo 1 > /logs/verifier/reward.txt"
    floor = "{ echo 0 > /logs/verifier/reward.txt; }"
    text = f"#!/bin/bash\ntrap '{action}' EXIT\npytest /tests/test_outputs.py || {floor}\n"
    editor = task(text)
    script = ScriptEdit(editor, "tests/test.sh")
    with_floor(script)
    script.save()
    assert run(editor.text("tests/test.sh"), 0) == {"reward.txt": "1"}
    assert run(editor.text("tests/test.sh"), 1) == {"reward.txt": "0"}


def test_a_reward_in_json_gets_none_beside_it(task, run):
    text = "#!/bin/bash\nset -e\npytest /tests/test_outputs.py\necho '{\"reward\": 1}' > /logs/verifier/reward.json\n"
    editor = task(text)
    assert apply(editor, [library.reward_guard()]).applied == ["reward-guard"]
    assert run(editor.text("tests/test.sh"), 0) == {"reward.json": '{"reward": 1}'}
    assert run(editor.text("tests/test.sh"), 2) == {"reward.txt": "0"}


def test_the_status_of_the_script_stays(task, tmp_path):
    editor = task(f"#!/bin/bash\ntrap 'echo $?' EXIT\nset -e\nbash -c 'exit 5'\npytest x\n{GIVES_ONE}")
    apply(editor, [library.reward_guard()])
    text = editor.text("tests/test.sh").replace("/logs/verifier", str(tmp_path))
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (5, "5\n")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('true() { :; }\n[ -n "$A" ] && exec true\nset -e\npytest x\n' + GIVES_ONE, "an exec that is not understood"),
        ('[ -n "$A" ] && exec -a b true\nset -e\npytest x\n' + GIVES_ONE, "an exec that is not understood"),
    ],
)
def test_what_is_not_understood_is_refused_and_nothing_is_changed(task, lines, words):
    editor = task(f"#!/bin/bash\n{lines}")
    before = editor.content()
    outcome = apply(editor, [library.reward_guard()])
    assert words in outcome.trouble[0]
    assert editor.content() == before


LOOSE = {
    "|| true": "pytest /tests/test_outputs.py || true\n",
    "|| echo": "pytest /tests/test_outputs.py || echo 'they failed'\n",
    "|| true under set -e": "set -e\npytest /tests/test_outputs.py || true\n",
    "a pipe": "pytest /tests/test_outputs.py | tee /dev/null\n",
    "a pipe under set -e": "set -eu\npytest /tests/test_outputs.py 2>&1 | tee /dev/null\n",
    "both": "pytest /tests/test_outputs.py | tee /dev/null || true\n",
}


@pytest.mark.parametrize("shape", LOOSE)
def test_a_status_that_was_thrown_away_counts(task, run, shape):
    text = f"#!/bin/bash\n{LOOSE[shape]}{BY_STATUS}"
    assert run(text, 1) == {"reward.txt": "1"}
    editor = task(text)
    outcome = apply(editor, [library.kept_status()])
    assert (outcome.applied, outcome.trouble) == (["kept-status"], [])
    assert run(editor.text("tests/test.sh"), 0) == {"reward.txt": "1"}
    assert run(editor.text("tests/test.sh"), 1) == {"reward.txt": "0"}


def test_a_reward_that_depends_on_no_status_is_a_persons_to_mend(task):
    editor = task(f"#!/bin/bash\n{LOOSE['|| true']}{GIVES_ONE}")
    assert "does not depend on the tests" in apply(editor, [library.kept_status()]).trouble[0]


def test_a_pipe_in_a_shell_that_has_no_pipefail_is_refused(task):
    editor = task(f"#!/bin/sh\n{LOOSE['a pipe']}{BY_STATUS}")
    assert "in bash alone" in apply(editor, [library.kept_status()]).trouble[0]


@pytest.mark.parametrize(
    ("lines", "added"),
    [
        (f"pytest x\n{BY_STATUS}", ["mkdir -p /logs/verifier", "rm -f /logs/verifier/reward.txt"]),
        (f"mkdir -p /logs/verifier\npytest x\n{BY_STATUS}", ["rm -f /logs/verifier/reward.txt"]),
        (f"rm -rf /logs/verifier/*\npytest x\n{BY_STATUS}", ["mkdir -p /logs/verifier"]),
        (f'mkdir -p "/logs/verifier"\necho 0 > "/logs/verifier/reward.txt"\npytest x\n{BY_STATUS}', []),
        ("python3 /tests/grade.py\n", []),
    ],
)
def test_the_folder_is_made_and_old_rewards_go(task, run, lines, added):
    editor = task(f"#!/bin/bash\n{lines}")
    outcome = apply(editor, [library.fresh_rewards()])
    assert (outcome.applied, outcome.trouble) == (["fresh-rewards"] if added else [], [])
    for line, wanted in zip(editor.text("tests/test.sh").split("\n")[1:], added, strict=False):
        assert line.startswith(wanted)


def test_patches_of_one_script_go_together(task, run):
    editor = task(f"#!/bin/bash\nset -e\npytest /tests/test_outputs.py || true\n{BY_STATUS}")
    patches = in_order([library.fresh_rewards(), library.kept_status(), library.reward_guard()])
    assert apply(editor, patches).applied == ["fresh-rewards", "kept-status"]
    assert run(editor.text("tests/test.sh"), 1) == {"reward.txt": "0"}
    assert (
        "conflicts with fresh-rewards"
        in apply(
            task(f"#!/bin/bash\npytest x || true\n{BY_STATUS}"), [library.fresh_rewards(), library.kept_status()]
        ).trouble[0]
    )


def test_carriage_returns_and_broken_scripts_are_refused(task):
    editor = task(f"#!/bin/bash\r\nset -e\r\npytest x\r\n{GIVES_ONE}")
    assert "carriage returns" in apply(editor, [library.reward_guard()]).trouble[0]
    editor = task("#!/bin/bash\nif true; then\n")
    assert apply(editor, [library.reward_guard(), library.fresh_rewards(), library.kept_status()]).applied == []
