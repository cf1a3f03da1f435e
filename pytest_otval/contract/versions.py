"""Versions of the tools behind a run: recorded, told where they differ, and no reason to refuse it."""

from __future__ import annotations

import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version

DISTRIBUTIONS = ("pytest-otval", "pytest", "pytest-xdist")


def tool_versions() -> dict[str, str]:
    """Return the versions of Python, of what runs the items, and of Apptainer; those that are not here are left out."""
    found = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    apptainer = shutil.which("apptainer")
    if apptainer:
        words = subprocess.run([apptainer, "--version"], capture_output=True, text=True, check=False).stdout.split()
        found["apptainer"] = words[-1] if words else "unknown"
    return found
