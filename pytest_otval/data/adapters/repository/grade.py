"""Decides from a JUnit report whether every expected test passed: exit status 0 if so, 1 if not.

usage: grade.py IDS_JSON REPORT

The lists "fail_to_pass" and "pass_to_pass" hold ids, each of one test. The list "selected" holds what was asked to be
run: files, classes, or tests without their parameters; of each, one test at least has to be there, and all have to pass.
"""

import json
import sys
import xml.etree.ElementTree as ElementTree

SHOWN = 20
CLEAN = ("properties", "system-out", "system-err")


def dotted(node_id):
    """Return how the report names a test: classname and name with a dot between them."""
    address, bracket, parameters = node_id.partition("[")
    names = address.split("::")
    names[0] = names[0].replace("/", ".")
    if names[0].endswith(".py"):
        names[0] = names[0][:-3]
    return ".".join(names) + bracket + parameters


def outcomes(report_path):
    """Return whether each test passed, by name: no entry of it has a failure, an error or a skip."""
    passed = {}
    for case in ElementTree.parse(report_path).iter("testcase"):
        name = "{}.{}".format(case.get("classname"), case.get("name"))
        passed[name] = passed.get(name, True) and all(child.tag in CLEAN for child in case)
    return passed


def is_met(selected, passed):
    """Return whether what was selected has tests, and all of them passed."""
    name = dotted(selected)
    found = [one for one in passed if one == name or one.startswith((name + ".", name + "["))]
    return bool(found) and all(passed[one] for one in found)


def main(ids_path, report_path):
    with open(ids_path, encoding="utf-8") as stream:
        ids = json.load(stream)
    try:
        passed = outcomes(report_path)
    except (OSError, ElementTree.ParseError) as error:
        print(f"no report: {error}")
        return 1
    missing = [one for kind in ("fail_to_pass", "pass_to_pass") for one in ids[kind] if not passed.get(dotted(one))]
    missing += [one for one in ids["selected"] if not is_met(one, passed)]
    for one in missing[:SHOWN]:
        print(f"did not pass: {one}")
    print(f"{len(missing)} expected tests did not pass")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
