"""static: which findings fail it, and what it remembers."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_otval.checks.cache import FindingsCache
from pytest_otval.core import Finding, Severity
from pytest_otval.stages.question import Known, Question
from pytest_otval.stages.static import answer, judged, recall
from pytest_otval.task.dataset import DatasetSettings
from pytest_otval.task.load import load_task
from selftests.checks.conftest import write_task

INFO, WARNING, ERROR = (
    Finding(f"a-{severity}", severity, "m", "f", number) for number, severity in enumerate(reversed(Severity), start=1)
)


@pytest.mark.parametrize(
    ("severity", "findings", "headline"),
    [
        (Severity.ERROR, [INFO, WARNING], ""),
        (Severity.ERROR, [INFO, ERROR], "f:3: a-error: m"),
        (Severity.WARNING, [INFO, WARNING], "f:2: a-warning: m"),
        (Severity.WARNING, [WARNING, ERROR], "f:3: a-error: m (and 1 more)"),
        (Severity.INFO, [INFO, WARNING, ERROR], "f:3: a-error: m (and 2 more)"),
        (Severity.INFO, [], ""),
        (Severity.INFO, [replace(INFO, allowed="why")], ""),
        (Severity.WARNING, [replace(ERROR, allowed="why"), WARNING], "f:2: a-warning: m"),
    ],
)
def test_what_fails(severity, findings, headline):
    result = judged(findings, severity)
    assert (result.reason, result.headline) == ("static-findings" if headline else "expected", headline)
    assert result.facts["checks"] == [finding.as_dict() for finding in findings]


def test_what_is_known_of_other_content_or_settings_is_not_recalled(fake_machine, tmp_path):
    machine = fake_machine()
    machine.findings = FindingsCache(tmp_path / "cache", "v")
    write_task(tmp_path / "task", {"solution/solve.sh": None})
    task, settings = load_task(tmp_path / "task", "data"), DatasetSettings()
    first = answer(machine, Question(task, settings, tmp_path / "evidence", digest="sha256:1"))
    known = Known("data", "task", "sha256:1", settings)
    assert recall(machine, known).facts == {**first.facts, "cached_from": "cache/static"}
    assert [one["check"] for one in first.facts["checks"]] == ["files-solution-missing"]
    for other in (
        replace(known, digest="sha256:2"),
        replace(known, task="other"),
        replace(known, settings=replace(settings, oracle="none")),
        replace(known, settings=replace(settings, harbor_lint={"ignore": ["root-agent"]})),
    ):
        assert recall(machine, other) is None
    # Scores say nothing about files.
    assert recall(machine, replace(known, settings=replace(settings, oracle_min=0.5))) is not None


def test_without_a_version_nothing_is_recalled(fake_machine, tmp_path):
    machine = fake_machine()
    machine.findings = None
    write_task(tmp_path / "task", {})
    task = load_task(Path(tmp_path / "task"), "data")
    assert answer(machine, Question(task, DatasetSettings(), tmp_path, digest="sha256:1")).reason == "expected"
    assert recall(machine, Known("data", "task", "sha256:1", DatasetSettings())) is None
