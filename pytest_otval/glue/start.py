"""``pytest`` as an environment of setup.sh starts it: it passes over ini files of tasks and datasets.

pytest looks for an ini file beside and above its arguments, and loads what that file names, before any plugin is
there to object. So this comes before pytest.
"""

from __future__ import annotations

import sys

import pytest

from pytest_otval.glue._compat import search_ini_files_from
from pytest_otval.glue.guard import outside


def main() -> int:
    """Run pytest on the command line's arguments and return its exit status."""
    search_ini_files_from(outside)
    return pytest.console_main()


if __name__ == "__main__":
    sys.exit(main())
