"""Patches for faults that many datasets have; docs/patches.md lists them.

Each is needed where the static check of its fault finds something, or where the fault is by what the patch itself looks
for. So a patch cannot be applied to a sound task, and one that does not repair what it is for is an error.
"""

from pytest_otval.sources.library.docker import (
    apt_says_yes,
    build_errors_shown,
    no_git_history,
    package_lists,
    quoted_versions,
    run_bits,
    tests_out_of_image,
)
from pytest_otval.sources.library.overlay import overlay
from pytest_otval.sources.library.pins import pinned_bases, pinned_packages
from pytest_otval.sources.library.rewards import fresh_rewards, kept_status, reward_guard
from pytest_otval.sources.library.settings import least_limits, resources, task_names, time_limits
from pytest_otval.sources.library.text import executable_scripts, safe_repairs
from pytest_otval.sources.library.verifier import hardened_tests, installs_in_runtime, isolated_graders, judges_restored

__all__ = [
    "apt_says_yes",
    "build_errors_shown",
    "executable_scripts",
    "fresh_rewards",
    "hardened_tests",
    "installs_in_runtime",
    "isolated_graders",
    "judges_restored",
    "kept_status",
    "least_limits",
    "no_git_history",
    "overlay",
    "package_lists",
    "pinned_bases",
    "pinned_packages",
    "quoted_versions",
    "resources",
    "reward_guard",
    "run_bits",
    "safe_repairs",
    "task_names",
    "tests_out_of_image",
    "time_limits",
]
