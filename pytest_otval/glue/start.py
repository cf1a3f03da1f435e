"""``pytest`` as an environment of setup.sh starts it: it passes over ini files of tasks and datasets.

pytest looks for an ini file beside and above its arguments, and loads what that file names, before any plugin is
there to object. So this comes before pytest.
"""

from __future__ import annotations

import sys
from importlib.metadata import distribution

from pytest_otval.glue._compat import search_ini_files_from
from pytest_otval.glue.guard import outside

OF_PATHS = frozenset(("--otval-out", "--otval-contract", "--otval-prepare-contract", "--otval-resume"))
"""Options whose value pytest would take for an argument, before it knows options of plugins, and begin there to look
for its rootdir."""


def joined(args: list[str]) -> list[str]:
    """Return arguments with ``--otval-out DIR`` and its like as one word."""
    found: list[str] = []
    for arg in args:
        if found and found[-1] in OF_PATHS:
            found[-1] = f"{found[-1]}={arg}"
        else:
            found.append(arg)
    return found


def main() -> int:
    """Do what pytest's own command does, and return its exit status."""
    search_ini_files_from(outside)
    sys.argv = ["pytest", *joined(sys.argv[1:])]
    (command,) = distribution("pytest").entry_points.select(group="console_scripts", name="pytest")
    return int(command.load()())


if __name__ == "__main__":
    sys.exit(main())
