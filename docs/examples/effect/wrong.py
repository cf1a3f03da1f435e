"""Patches that look right and are wrong, as in real repairs: ``effect`` tells of each."""

import sys

from pytest_otval.sources.dataset import PatchedDataset
from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.patches import Patch

TEST, DOCKERFILE = "tests/test.sh", "environment/Dockerfile"
COMMIT = "git -c user.name=task -c user.email=task@localhost commit -q"
REPOSITORY = f"""\
RUN git init -q && git add -A && {COMMIT} -m start
RUN printf '%s\\n' 'def mean(numbers):' '    how_many = len(numbers)' '    if how_many == 0:' '        return 0.0' \\
  '    return sum(numbers) / how_many' > mod.py && {COMMIT} -a -m solved && git reset -q --hard HEAD~1
"""


def add_tool(task: TaskEditor) -> None:
    """Copy a script into the image."""
    task.write("environment/greet.sh", task.text("solution/solve.sh"))
    task.write(DOCKERFILE, task.text(DOCKERFILE) + "COPY greet.sh /usr/local/bin/greet\n")


strict_shell = Patch(
    # Where the tests fail the script ends: nothing is left to look at `$?`, and no 0 is written.
    "strict-shell",
    fault="shell-options",
    needed=lambda task: "set -euo pipefail" not in task.text(TEST),
    change=lambda task: task.replace(TEST, "#!/bin/bash\n", "#!/bin/bash\nset -euo pipefail\n"),
    tasks=("total",),
)
with_repository = Patch(
    # The agent was to have a repository, and finds the solution in its history.
    "with-repository",
    fault="no-repository",
    needed=lambda task: "git init" not in task.text(DOCKERFILE),
    change=lambda task: task.write(DOCKERFILE, task.text(DOCKERFILE) + REPOSITORY),
    tasks=("module",),
)
with_tool = Patch(
    # The image was to have a tool, and gets the solution with it.
    "with-tool",
    fault="missing-tool",
    needed=lambda task: "COPY" not in task.text(DOCKERFILE),
    change=add_tool,
    tasks=("greeting",),
)
generous = Patch(
    # The reward was lost where the tests fail, and is now there before they run.
    "generous",
    fault="reward-lost-on-failure",
    needed=lambda task: "set -e\n" in task.text(TEST),
    change=lambda task: task.replace(TEST, "set -e\n", "echo 1 > /logs/verifier/reward.txt\n"),
    tasks=("greeting",),
)

PATCHES = [strict_shell, with_repository, with_tool, generous]

if __name__ == "__main__":
    sys.exit(PatchedDataset(__file__, PATCHES).main())
