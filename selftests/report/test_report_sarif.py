"""Findings as SARIF, which must be what its schema says (selftests/data/sarif)."""

import json
from pathlib import Path
from urllib.parse import unquote

import jsonschema
import pytest

from pytest_otval.__main__ import main
from pytest_otval.checks.catalogue import catalogue
from pytest_otval.core import Finding, Severity
from selftests.report.ledgers import line, make_run

SCHEMA = json.loads((Path(__file__).parents[1] / "data" / "sarif" / "sarif-schema-2.1.0.json").read_text())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)

FINDINGS = (
    Finding("text-crlf", Severity.ERROR, "CRLF \x1b[31m line ends", "solution/a b#\\x1b.sh", 1, "convert"),
    Finding("ours-not", Severity.WARNING, "of another plugin", "task.toml", 0),
    Finding("text-bom", Severity.INFO, "m", "instruction.md", None, "f", "why", "task.toml:4"),
)


def sarif(folder, *lines):
    run = make_run(folder / "run", *lines)
    assert main(["report", str(run), "--sarif", str(folder / "out.sarif")]) == 0
    log = json.loads((folder / "out.sarif").read_text())
    VALIDATOR.validate(log)
    (only,) = log["runs"]
    return only


def static(task="a", *findings, **fields):
    return line(task, "static", checks=[finding.as_dict() for finding in findings], **fields)


def test_the_schema_refuses_what_is_no_sarif():
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate({"version": "2.1.0", "runs": [{"results": []}]})


@pytest.mark.parametrize("lines", [[line("a")], [static("a")], [static("a", *FINDINGS), static(None, FINDINGS[0])]])
def test_every_run_is_valid(tmp_path, lines):
    sarif(tmp_path, *lines)


def test_results_say_what_is_found_and_where(tmp_path):
    log = sarif(tmp_path, static("a", *FINDINGS, reason="static-findings"), line("b"))
    rules = log["tool"]["driver"]["rules"]
    crlf, other, bom = log["results"]
    assert [rules[one["ruleIndex"]]["id"] for one in log["results"]] == ["text-crlf", "ours-not", "text-bom"]
    assert [one["ruleId"] for one in log["results"]] == ["text-crlf", "ours-not", "text-bom"]
    assert [one["level"] for one in log["results"]] == ["error", "warning", "note"]
    place = crlf["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].isascii()
    assert unquote(place["artifactLocation"]["uri"]) == "datasets/demo/tasks/a/solution/a b#\\x1b.sh"
    assert place["region"] == {"startLine": 1}
    assert crlf["message"]["text"].isprintable()
    assert "region" not in bom["locations"][0]["physicalLocation"]
    assert other["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}


def test_what_is_allowed_is_suppressed_with_the_reason(tmp_path):
    by_dataset = Finding("text-bom", Severity.INFO, "m", "a", None, "", "why", "dataset.toml:7 (ann until 2030-01-31)")
    open_one, in_task, outside = sarif(tmp_path, static("a", FINDINGS[0], FINDINGS[2], by_dataset))["results"]
    assert open_one["suppressions"] == []
    (kept,) = in_task["suppressions"]
    assert (kept["kind"], kept["justification"]) == ("inSource", "why (task.toml:4)")
    assert outside["suppressions"][0]["kind"] == "external"


def test_all_rules_are_told(tmp_path):
    rules = sarif(tmp_path, static("a"))["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(catalogue())


def test_findings_of_a_dataset_lie_in_its_folder(tmp_path):
    (result,) = sarif(tmp_path, static(None, Finding("ds-no-task-toml", Severity.WARNING, "m", "tasks/x")))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "datasets/demo/tasks/x"


def test_a_fingerprint_stays_when_lines_move(tmp_path):
    moved = Finding(*(*(getattr(FINDINGS[0], name) for name in ("check", "severity", "message", "path")), 9, "other"))
    first, second, third = sarif(tmp_path, static("a", FINDINGS[0], moved, FINDINGS[1]))["results"]
    assert first["partialFingerprints"] == second["partialFingerprints"] != third["partialFingerprints"]


def test_a_selection_is_heard(tmp_path, capsys):
    run = make_run(tmp_path / "run", static("a", FINDINGS[0]), static("b", FINDINGS[0]))
    words = ["report", str(run), "--sarif", str(tmp_path / "x"), "--select", "task == 'b'", "--json", "-"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert "sarif: 1 findings" in err
    assert json.loads(out)["results"][0]["checks"][0]["check"] == "text-crlf"


def test_a_file_that_cannot_be_written_is_wrong_usage(tmp_path, capsys):
    run = make_run(tmp_path / "run", static("a"))
    assert main(["report", str(run), "--sarif", str(tmp_path / "no" / "x")]) == 4
    assert "cannot be written" in capsys.readouterr().err
