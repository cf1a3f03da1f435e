"""``pytest`` as an environment of setup.sh starts it: it passes over ini files of tasks and datasets.

pytest looks for an ini file beside and above its arguments, and loads what that file names, before any plugin is
there to object. So this comes before pytest.
"""

from __future__ import annotations

import sys
from importlib.metadata import distribution

from pytest_otval.glue._compat import search_ini_files_from
from pytest_otval.glue.guard import outside


def main() -> int:
    """Do what pytest's own command does, and return its exit status."""
    search_ini_files_from(outside)
    sys.argv[0] = "pytest"
    (command,) = distribution("pytest").entry_points.select(group="console_scripts", name="pytest")
    return int(command.load()())


if __name__ == "__main__":
    sys.exit(main())
