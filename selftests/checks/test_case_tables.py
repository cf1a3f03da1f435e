"""Each check of the tables beside this file: its fault is found on its line, its near miss is not."""

from __future__ import annotations

import pytest

from selftests.checks import (
    cases_docker,
    cases_instruction,
    cases_leaks,
    cases_python,
    cases_solution,
    cases_steps,
    cases_toml,
    cases_unsaid,
    cases_verify,
)

TABLES = (
    cases_instruction,
    cases_toml,
    cases_steps,
    cases_solution,
    cases_unsaid,
    cases_docker,
    cases_leaks,
    cases_verify,
    cases_python,
)
FAULTS = [fault for table in TABLES for fault in table.FAULTS]
NEAR_MISSES = [entry for table in TABLES for entry in table.NEAR_MISSES]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.check)
def test_a_fault_is_found_on_its_line(look, fault):
    found = [one for one in look(fault.edits) if one.check == fault.check and one.path == fault.path]
    assert (fault.line, fault.severity) in [(one.line, one.severity) for one in found]
    assert any(fault.says in one.message for one in found)
    assert all(one.fix for one in found)


@pytest.mark.parametrize(("check", "edits"), NEAR_MISSES, ids=[check for check, _ in NEAR_MISSES])
def test_a_near_miss_is_passed_over(look, check, edits):
    assert [str(one) for one in look(edits) if one.check == check] == []


def test_each_check_of_the_families_has_both():
    faults, misses = {fault.check for fault in FAULTS}, {check for check, _ in NEAR_MISSES}
    assert faults == misses
