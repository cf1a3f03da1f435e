"""Patches in real containers: tiny tasks over one image, each asked before and after."""

import shutil

import pytest

from pytest_otval.runtimes.record import Reference
from pytest_otval.sources import library
from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.patches import apply, in_order
from selftests.checks.conftest import write_task
from selftests.runtimes.conftest import verifier_runtime

pytestmark = pytest.mark.integration

__all__ = ["verifier_runtime"]

TOML = 'schema_version = "1.4"\n[agent]\ntimeout_sec = {agent}\n[verifier]\ntimeout_sec = 60\n[environment]\ncpus = 1\n'
RIGHT = '#!/bin/bash\n[ "$(cat /app/answer.txt 2>/dev/null)" = 42 ]\n'
RUN = "bash /tests/test_answer.sh"
BY_STATUS = "if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi\n"
GIVES_ONE = "echo 1 > /logs/verifier/reward.txt\n"
TINY = {
    "task.toml": TOML.format(agent=60),
    "tests/test_answer.sh": RIGHT,
    "tests/test_outputs.py": None,
}


def script(*lines):
    return {"tests/test.sh": "\n".join(["#!/bin/bash", *lines, ""])}


GRADER = {
    "environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\nCOPY test_grade.sh /opt/\n",
    "environment/test_grade.sh": "#!/bin/bash\ntrue\n",
    "tests/test_grade.sh": RIGHT,
}
SHOWN = "FROM debian:bookworm-slim\nWORKDIR /app\nCOPY . /opt/all\n"
SOLUTION = (
    "#!/bin/bash\n# The one and only way to the answer, which is no secret any more here.\necho 42 > /app/answer.txt\n"
)
CASES = {
    "set -e": (library.reward_guard(), script("set -e", RUN, BY_STATUS), "noop", "no-reward"),
    "set -euo pipefail": (library.reward_guard(), script("set -euo pipefail", RUN, BY_STATUS), "noop", "no-reward"),
    "exit in the middle": (library.reward_guard(), script(f"{RUN} || exit 1", GIVES_ONE), "noop", "no-reward"),
    "a trap of its own": (
        library.reward_guard(),
        script("trap 'rm -f /tmp/x; exit 3' EXIT", "set -e", RUN, GIVES_ONE),
        "noop",
        "no-reward",
    ),
    "|| true": (library.kept_status(), script(f"{RUN} || true", BY_STATUS), "noop", "wrong-reward"),
    "a pipe": (library.kept_status(), script(f"{RUN} | tee /tmp/log", BY_STATUS), "noop", "wrong-reward"),
    "a pipe, set -e": (
        library.kept_status(),
        script("set -e", f"{RUN} | tee /tmp/log", BY_STATUS),
        "noop",
        "wrong-reward",
    ),
    "carriage returns": (
        library.safe_repairs(),
        {"tests/test.sh": f"#!/bin/bash\n{RUN}\n{BY_STATUS}".replace("\n", "\r\n")},
        "oracle",
        "no-reward",
    ),
    "a test without exec bit": (
        library.safe_repairs(),
        script("/tests/test_answer", BY_STATUS) | {"tests/test_answer": ("0644", RIGHT)},
        "oracle",
        "wrong-reward",
    ),
    "a grader in the image": (
        library.judges_restored(),
        script("bash /opt/test_grade.sh", BY_STATUS) | GRADER,
        "noop",
        "wrong-reward",
    ),
    "too little time": (
        library.least_limits(60, 60),
        script(RUN, BY_STATUS)
        | {
            "task.toml": TOML.format(agent=0.2),
            "solution/solve.sh": "#!/bin/bash\nsleep 2\necho 42 > /app/answer.txt\n",
        },
        "oracle",
        "agent-timeout",
    ),
    "the solution in the image": (
        library.tests_out_of_image(),
        script(RUN, BY_STATUS)
        | {"environment/Dockerfile": SHOWN, "environment/solve.sh": SOLUTION, "solution/solve.sh": SOLUTION},
        "static",
        "static-findings",
    ),
    "a file that the build calls": (
        library.run_bits(),
        script(RUN, BY_STATUS)
        | {
            "environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\nCOPY make.sh /opt/\nRUN /opt/make.sh\n",
            "environment/make.sh": ("0644", "#!/bin/sh\ntrue\n"),
        },
        "build",
        "build-failed",
    ),
}


@pytest.fixture
def editor(tmp_path):
    def made(edits):
        write_task(tmp_path / "set" / "tasks" / "tiny", {**TINY, **edits})
        return TaskEditor(tmp_path / "set" / "tasks" / "tiny", "set")

    return made


@pytest.mark.parametrize("case", CASES)
def test_the_answer_is_wrong_before_and_right_after(ask_real, editor, tmp_path, case):
    patch, edits, stage, before = CASES[case]
    task = editor(edits)
    assert ask_real(stage, task.task).reason == before
    # A machine reads each folder once.
    copy = tmp_path / "patched" / "tasks" / task.name
    shutil.copytree(task.folder, copy)
    task = TaskEditor(copy, "patched")
    outcome = apply(task, [patch])
    assert (outcome.applied, outcome.trouble) == ([patch.id], [])
    for asked in dict.fromkeys((stage, "oracle", "noop")):
        result = ask_real(asked, task.task)
        assert result.reason == "expected", (asked, result)


def test_tests_that_would_fetch_pytest_run_in_a_runtime(ask_real, editor, verifier_runtime):
    tests = "from pathlib import Path\n\n\ndef test_it():\n    assert Path('/app/answer.txt').read_text() == '42\\n'\n"
    lines = ("pip install pytest==8.4.1", "python3 -m pytest /tests/test_outputs.py", BY_STATUS)
    toml = TOML.format(agent=60) + 'network_mode = "no-network"\n'
    task = editor(script(*lines) | {"tests/test_outputs.py": tests, "task.toml": toml})
    assert ask_real("oracle", task.task).reason == "wrong-reward"
    assert apply(task, [library.installs_in_runtime()]).applied == ["installs-in-runtime"]
    assert str(Reference.of(verifier_runtime)) == library.installs_in_runtime().inputs()
    assert ask_real("oracle", task.task).reason == "expected"
    assert ask_real("noop", task.task).reason == "expected"


def test_many_patches_of_one_task_together(ask_real, editor):
    """A task that has no answer at all: a pipe that hides the status, then a script that ends before the reward."""
    task = editor(
        script("set -eu", "trap 'rm -rf /tmp/x' EXIT", "/tests/test_answer | tee /tmp/log", BY_STATUS)
        | {"tests/test_answer": ("0644", RIGHT), "task.toml": TOML.format(agent=1)}
    )
    patches = in_order(
        [library.safe_repairs(), library.fresh_rewards(), library.kept_status(), library.least_limits(60, 30)]
    )
    assert apply(task, patches).applied == [patch.id for patch in patches]
    assert ask_real("oracle", task.task).reason == "expected"
    assert ask_real("noop", task.task).reason == "expected"
