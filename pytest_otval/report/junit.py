"""junit XML from a ledger: the same cases and properties as ``pytest --junitxml`` writes during a run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from pytest_otval.report.failure import failure_text
from pytest_otval.report.properties import properties
from pytest_otval.report.results import Results, Row, row_of
from pytest_otval.report.text import clean, one_line

_MESSAGE_LETTERS = 500


def write_junit(results: Results, path: Path) -> None:
    """Write a junit file, one case at a time. Raises OSError."""
    with path.open("w", encoding="utf-8") as file:
        suite = " ".join(f"{name}={quoteattr(value)}" for name, value in _suite(results).items())
        file.write(f'<?xml version="1.0" encoding="utf-8"?>\n<testsuites name="otval"><testsuite {suite}>\n')
        for line in results.lines():
            case = _case(row_of(line), line, results.run)
            file.write(ElementTree.tostring(case, encoding="unicode") + "\n")
        file.write("</testsuite></testsuites>\n")


def _suite(results: Results) -> dict[str, str]:
    counts = _counts(results.rows)
    return {
        "name": one_line(results.run.name),
        "tests": str(sum(counts.values())),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
        "time": f"{sum(row.seconds for row in results.rows):.3f}",
    }


def _counts(rows: Iterable[Row]) -> dict[str, int]:
    counts = {"": 0, "failure": 0, "error": 0, "skipped": 0}
    for row in rows:
        counts[_tag(row)] += 1
    return counts


def _tag(row: Row) -> str:
    """Return the element that tells how a case ended, as pytest chooses it; none for a pass."""
    if row.expected_bad or row.verdict in ("blocked", "n/a"):
        return "skipped"
    if row.verdict == "error":
        return "error"
    return "failure" if row.unexpected else ""


def _case(row: Row, line: dict[str, Any], run: Path) -> ElementTree.Element:
    file, _, name = one_line(row.id).rpartition("::")
    case = ElementTree.Element("testcase", classname=file.replace("/", "."), name=name, time=f"{row.seconds:.3f}")
    known = ElementTree.SubElement(case, "properties")
    for key, value in properties(row):
        ElementTree.SubElement(known, "property", name=key, value=value)
    tag = _tag(row)
    if tag:
        said = row.known_bad if row.known_bad and tag != "error" else f"{row.reason}: {line['headline']}"
        how = ElementTree.SubElement(case, tag, message=one_line(said, _MESSAGE_LETTERS))
        if tag == "skipped":
            how.set("type", "pytest.xfail" if row.expected_bad else "pytest.skip")
        how.text = clean(failure_text(line, run))
    return case
