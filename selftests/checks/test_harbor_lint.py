"""Rules of `harbor lint` that are turned off, as Harbor 0.26 reads its tables."""

import pytest

from pytest_otval.checks.catalogue import catalogue
from pytest_otval.checks.harbor_lint import RULES, turned_off


def test_every_check_that_a_rule_names_exists():
    assert {check for checks in RULES.values() for check in checks} <= catalogue().keys()


@pytest.mark.parametrize(
    ("tables", "off"),
    [
        ([{}], set()),
        ([{"ignore": ["overlapping-artifacts"]}], {"toml-artifact-overlap"}),
        ([{"select": ["ALL"], "ignore": ["overlapping-artifacts"]}], {"toml-artifact-overlap"}),
        ([{"ignore": ["overlapping-artifacts"]}, {}], {"toml-artifact-overlap"}),
        ([{"ignore": ["overlapping-artifacts"]}, {"extend-select": ["overlapping-artifacts"]}], set()),
        ([{"ignore": ["overlapping-artifacts"]}, {"select": ["ALL"]}], set()),
        ([{"ignore": ["verifier-runtime-install"]}], set()),
    ],
)
def test_what_is_off(tables, off):
    assert (set(turned_off(*tables)[0]), turned_off(*tables)[1]) == (off, [])


def test_a_check_of_two_rules_is_off_when_both_are():
    off, _ = turned_off({"ignore": ["verifier-runtime-install", "verifier-network-download"]})
    assert "network-at-verify" in off


def test_a_selection_turns_off_all_others():
    off, _ = turned_off({"select": ["overlapping-artifacts"]})
    assert off.keys() == {check for checks in RULES.values() for check in checks} - {"toml-artifact-overlap"}
    assert off["toml-unknown-field"] == "unknown-config-field"


@pytest.mark.parametrize(
    ("table", "refused"),
    [
        ({"ignore": ["no-such-rule"]}, ["ignore"]),
        ({"ignore": ["ALL"]}, ["ignore"]),
        ({"ignore": "overlapping-artifacts"}, ["ignore"]),
        ({"ignores": []}, ["ignores"]),
        ({"select": [1]}, ["select"]),
    ],
)
def test_a_table_that_harbor_refuses_turns_nothing_off(table, refused):
    assert turned_off(table) == ({}, refused)
