"""Runs pytest on the files or tests of a list and writes a report: run_tests.py IDS_JSON REPORT

To be started with -I: pytest and its plugins are the image's, and are loaded before a folder of the product can give
other modules of their names, or what looks like an installed plugin.
"""

import json
import os
import sys

import pytest


class Folders:
    """Puts the product's folders on the path once all plugins are loaded, and before any conftest.py is."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self):
        sys.path[:0] = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
        # As with `python -m pytest`, but behind all else, where it can stand in for nothing.
        sys.path.append(os.getcwd())


def main(ids_path, report_path):
    with open(ids_path, encoding="utf-8") as stream:
        targets = json.load(stream)["run"]
    options = ["-p", "no:cacheprovider", "--continue-on-collection-errors", "--rootdir=.", "--junitxml=" + report_path]
    return pytest.main(options + targets, plugins=[Folders()])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
