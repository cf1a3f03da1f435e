"""Runs the unittest tests of a list and writes a report as pytest's: run_tests.py IDS_JSON REPORT

To be started with -I: unittest is loaded before the product's folder comes onto the path.
"""

import json
import os
import sys
import unittest
import xml.etree.ElementTree as ElementTree


class Result(unittest.TextTestResult):
    """Notes which tests passed; a test that is skipped, or has a failing part, never counts as such."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.ids = []
        self.passed = []

    def startTest(self, test):
        super().startTest(test)
        self.ids.append(test.id())

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed.append(test.id())


def main(ids_path, report_path):
    with open(ids_path, encoding="utf-8") as stream:
        names = json.load(stream)["run"]
    folders = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    sys.path[:0] = [os.getcwd()] + folders
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    result = unittest.TextTestRunner(resultclass=Result).run(suite)
    root = ElementTree.Element("testsuite")
    for one in result.ids:
        place, _, name = one.rpartition(".")
        case = ElementTree.SubElement(root, "testcase", classname=place, name=name)
        if one not in result.passed:
            ElementTree.SubElement(case, "failure")
    ElementTree.ElementTree(root).write(report_path, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
