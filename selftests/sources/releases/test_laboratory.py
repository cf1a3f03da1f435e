import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_otval.sources.releases.laboratory import Run, Runs, passed_ids

OUTPUT = """\
..F.                                                                     [100%]
=========================== short test summary info ============================
PASSED tests/t.py::test_a
PASSED tests/t.py::TestB::test_c[x - y z]
XPASS tests/t.py::test_d - not promised
FAILED tests/t.py::test_e - assert 0
1 failed, 2 passed, 1 xpassed in 0.01s
"""


def runs(old, new):
    """Runs with the ids of these letters."""
    return Runs(*(tuple(Run(frozenset(letters), "") for letters in group) for group in (old, new)))


def test_only_tests_that_plainly_passed_count():
    assert passed_ids(OUTPUT) == {"tests/t.py::test_a", "tests/t.py::TestB::test_c[x - y z]"}


def test_ids_are_told_apart():
    found = runs(["ab", "abx", "ab"], ["bcxf", "bcxy", "bcxf"]).sort()
    # a was lost with the new release, and f, x and y differ between runs.
    assert found.fail_to_pass == ("c",)
    assert found.pass_to_pass == ("b",)
    assert found.flaky_fail_to_pass == ("f", "y")
    assert found.flaky_pass_to_pass == ("x",)
    assert found.flaky == ("f", "x", "y")


LETTERS = st.lists(st.sets(st.sampled_from("abcd")), min_size=1, max_size=3)


@settings(max_examples=100)
@given(LETTERS, LETTERS)
def test_what_is_graded_is_what_every_run_says(old, new):
    found = runs(old, new).sort()
    groups = (found.fail_to_pass, found.pass_to_pass, found.flaky_fail_to_pass, found.flaky_pass_to_pass)
    assert sum(map(len, groups)) == len(set().union(*groups))
    for one in found.fail_to_pass:
        assert all(one in run for run in new) and not any(one in run for run in old)
    for one in found.pass_to_pass:
        assert all(one in run for run in (*old, *new))
    assert set().union(*groups) | set().union(*old) >= set().union(*new)


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("E   socket.gaierror: [Errno -3] Temporary failure in name resolution\n", "socket.gaierror: [Errno -3]"),
        ("x\nE       OSError: [Errno 101] Network is unreachable \x1b[0m\nE  more", "OSError: [Errno 101] Network is"),
        (
            "E   Failed to resolve 'example.com' ([Errno -2] Name or service not known)",
            "Failed to resolve 'example.com'",
        ),
        ("E   ConnectionRefusedError: [Errno 111] Connection refused", ""),
        ("a test of the words Network is unreachable", ""),
        ("", ""),
    ],
)
def test_a_want_of_the_network_is_seen(output, line):
    wanted = Run(frozenset(), output).wants_network
    assert wanted.startswith(line) and bool(wanted) == bool(line) and wanted.isprintable()
