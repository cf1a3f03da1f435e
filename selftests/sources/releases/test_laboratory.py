from pytest_otval.sources.releases.laboratory import passed_ids

OUTPUT = """\
..F.                                                                     [100%]
=========================== short test summary info ============================
PASSED tests/t.py::test_a
PASSED tests/t.py::TestB::test_c[x - y z]
XPASS tests/t.py::test_d - not promised
FAILED tests/t.py::test_e - assert 0
1 failed, 2 passed, 1 xpassed in 0.01s
"""


def test_only_tests_that_plainly_passed_count():
    assert passed_ids(OUTPUT) == {"tests/t.py::test_a", "tests/t.py::TestB::test_c[x - y z]"}
