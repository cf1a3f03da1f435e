"""``all_passed.py REPORT``: exit status 0 only where each expected test is in the JUnit report once, and passed."""

import sys
from xml.etree import ElementTree

EXPECTED = ["test_factor", "test_version"]

cases = list(ElementTree.parse(sys.argv[1]).iter("testcase"))
names = sorted(case.get("name") for case in cases)
unhappy = [case.get("name") for case in cases for tag in ("failure", "error", "skipped") if case.find(tag) is not None]
print("expected:", EXPECTED, "found:", names, "not passed:", unhappy, sep="\n  ")
sys.exit(names != EXPECTED or bool(unhappy))
