"""junit XML from a ledger. That it equals pytest's own is held by selftests/glue/test_reports.py."""

from xml.etree import ElementTree

import pytest

from pytest_otval.report.junit import write_junit
from pytest_otval.report.results import read_results
from selftests.report.ledgers import line, make_run


def suite_of(tmp_path, *lines):
    write_junit(read_results(make_run(tmp_path / "run", *lines)), tmp_path / "junit.xml")
    return ElementTree.parse(tmp_path / "junit.xml").find("testsuite")


@pytest.mark.parametrize(
    ("fields", "tag", "message"),
    [
        ({}, "", ""),
        ({"reason": "wrong-reward", "headline": "low"}, "failure", "wrong-reward: low"),
        ({"reason": "killed", "headline": "gone"}, "error", "killed: gone"),
        ({"reason": "image-failed", "headline": "no gcc"}, "skipped", "image-failed: no gcc"),
        ({"reason": "compose", "headline": "it"}, "skipped", "compose: it"),
        ({"reason": "wrong-reward", "headline": "low", "known_bad": "why"}, "skipped", "why"),
        ({"known_bad": "why"}, "failure", "why"),
        ({"reason": "killed", "headline": "gone", "known_bad": "why"}, "error", "killed: gone"),
    ],
)
def test_how_a_case_ended(tmp_path, fields, tag, message):
    suite = suite_of(tmp_path, line(**fields))
    (case,) = suite
    ended = [(child.tag, child.get("message")) for child in case if child.tag != "properties"]
    assert ended == ([(tag, message)] if tag else [])
    counts = {"failure": suite.get("failures"), "error": suite.get("errors"), "skipped": suite.get("skipped")}
    assert counts == {name: str(int(name == tag)) for name in counts}


def test_any_text_makes_well_formed_xml(tmp_path):
    evil = "".join(map(chr, [*range(32), 0x7F, 0x9B, 0x2028, 0x202E, 0xD800, 0xFFFE, 0xFFFF])) + "]]><x a='\"&"
    id = f"datasets/demo/tasks/{evil}/task.toml::oracle"
    columns = {evil: evil}
    (case,) = suite_of(tmp_path, line(id=id, reason="no-reward", headline=evil, log=evil, columns=columns))
    assert case.find("failure").text.replace("\n", "").replace("\t", "").isprintable()
    assert "]]><x a='\"&" in case.find("failure").text
