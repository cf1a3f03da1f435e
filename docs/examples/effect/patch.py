"""Repairs three faults: a reward that is lost, a solution in the image, a verifier that trusts what agents change."""

import sys

from pytest_otval.sources.dataset import PatchedDataset
from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.library import hardened_tests, reward_guard
from pytest_otval.sources.library.needs import found
from pytest_otval.sources.patches import Patch


def without_solution(task: TaskEditor) -> None:
    """Take the solution out of the image."""
    task.replace("environment/Dockerfile", "COPY solve.sh /usr/local/bin/add-up\n", "")
    task.remove("environment/solve.sh")


PATCHES = [
    Patch("without-solution", "docker-solution-copied", without_solution, found("docker-solution-copied")),
    reward_guard(),
    hardened_tests(),
]

if __name__ == "__main__":
    sys.exit(PatchedDataset(__file__, PATCHES).main())
