"""Findings that were made before."""

import datetime
from dataclasses import replace

import pytest

from pytest_otval.checks.allow import DatasetAllows
from pytest_otval.checks.cache import FindingsCache, Subject
from pytest_otval.core import Finding, Severity
from pytest_otval.kept import Kept
from pytest_otval.task.allowed import Allowance

SUBJECT = Subject("data", "task", "sha256:1", "required", DatasetAllows())
FOUND = (
    Finding("a-b", Severity.ERROR, "it's \u00e9 \\x1b", "tests/test.sh", 3, "do"),
    Finding("c-d", Severity.INFO, "m", "task.toml", None, "", "because", "task.toml:4"),
)


def kept(folder, subject=SUBJECT, findings=FOUND):
    cache = FindingsCache(folder, "v")
    cache.put(subject, findings)
    cache.close()


def read(folder, subject=SUBJECT):
    return FindingsCache(folder, "v").get(subject)


@pytest.mark.parametrize("findings", [FOUND, ()])
def test_what_was_kept_is_found_by_another_process(tmp_path, findings):
    kept(tmp_path, findings=findings)
    assert read(tmp_path) == findings


ENTRY = Allowance("text-bom", "t*", "why", "ann", datetime.date(2030, 1, 1), 3)


@pytest.mark.parametrize(
    "other",
    [
        replace(SUBJECT, dataset="other"),
        replace(SUBJECT, task="other"),
        replace(SUBJECT, digest="sha256:2"),
        replace(SUBJECT, oracle="none"),
        replace(SUBJECT, allows=DatasetAllows([ENTRY])),
        replace(SUBJECT, allows=DatasetAllows([], {"ignore": ["x"]})),
    ],
)
def test_another_subject_is_not_known(tmp_path, other):
    kept(tmp_path)
    assert read(tmp_path, other) is None


def test_what_is_allowed_elsewhere_changes_nothing(tmp_path):
    kept(tmp_path)
    assert read(tmp_path, replace(SUBJECT, allows=DatasetAllows([replace(ENTRY, tasks="other")]))) == FOUND


@pytest.mark.parametrize("values", [3, [3], [{}], [{"check": "a"}], {"a": 1}, "text"])
def test_what_is_no_finding_is_not_found(tmp_path, values):
    other = Kept(tmp_path, "v")
    other.put(SUBJECT.dataset, SUBJECT.key, values)
    other.close()
    assert read(tmp_path) is None
