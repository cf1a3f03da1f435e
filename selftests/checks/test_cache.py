"""Findings that were made before."""

import datetime
import os
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_otval.checks import cache as module
from pytest_otval.checks.allow import DatasetAllows
from pytest_otval.checks.cache import BATCH, MAX_AGE_DAYS, FindingsCache, Subject
from pytest_otval.core import Finding, Severity
from pytest_otval.task.allowed import Allowance

SUBJECT = Subject("data", "task", "sha256:1", "required", DatasetAllows())
FOUND = (
    Finding("a-b", Severity.ERROR, "it's \u00e9 \\x1b", "tests/test.sh", 3, "do"),
    Finding("c-d", Severity.INFO, "m", "task.toml", None, "", "because", "task.toml:4"),
)


def kept(folder, subject=SUBJECT, findings=FOUND, version="v"):
    cache = FindingsCache(folder, version)
    cache.put(subject, findings)
    cache.close()


def read(folder, subject=SUBJECT, version="v"):
    return FindingsCache(folder, version).get(subject)


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


def test_other_checks_find_nothing_of_it(tmp_path):
    kept(tmp_path)
    assert read(tmp_path, version="w") is None


def test_the_same_process_finds_what_it_just_kept(tmp_path):
    cache = FindingsCache(tmp_path, "v")
    assert cache.get(SUBJECT) is None
    cache.put(SUBJECT, FOUND)
    assert cache.get(SUBJECT) == FOUND
    assert not list(tmp_path.rglob("*.jsonl"))


def test_the_latest_of_two_counts(tmp_path):
    kept(tmp_path)
    kept(tmp_path, findings=())
    assert read(tmp_path) == ()


def test_many_results_are_few_files_and_few_writes(tmp_path, monkeypatch):
    writes = []
    real = os.write
    monkeypatch.setattr(module.os, "write", lambda handle, data: writes.append(data) or real(handle, data))
    cache = FindingsCache(tmp_path, "v")
    for number in range(3 * BATCH + 1):
        cache.put(replace(SUBJECT, task=f"t{number}"), FOUND)
    cache.close()
    assert len(writes) == 4
    assert len(list(tmp_path.rglob("*.jsonl"))) == 1
    assert read(tmp_path, replace(SUBJECT, task="t7")) == FOUND


@settings(max_examples=60)
@given(st.data())
def test_a_torn_or_changed_file_only_forgets(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("cache")
    for number in range(3):
        kept(folder, replace(SUBJECT, task=str(number)))
    (file,) = folder.rglob("*.jsonl")
    content = bytearray(file.read_bytes())
    start = data.draw(st.integers(0, len(content)))
    content[start : data.draw(st.integers(start, len(content)))] = data.draw(st.binary(max_size=40))
    file.write_bytes(content)
    kept(folder, replace(SUBJECT, task="3"))
    for number in range(3):
        assert read(folder, replace(SUBJECT, task=str(number))) in (FOUND, None)
    assert read(folder, replace(SUBJECT, task="3")) == FOUND


@pytest.mark.parametrize("name", ["../up", "a/b", "", "..", "x" * 300, "\udcff"])
def test_no_name_leads_out_of_the_folder(tmp_path, name):
    subject = replace(SUBJECT, dataset=name)
    kept(tmp_path / "cache", subject)
    if len(name) < 200:
        assert read(tmp_path / "cache", subject) == FOUND
    assert [path.name for path in tmp_path.iterdir()] in (["cache"], [])


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    kept(tmp_path / "file")
    assert read(tmp_path / "file") is None


def test_a_file_that_has_grown_too_large_is_begun_anew(tmp_path, monkeypatch):
    kept(tmp_path)
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 10)
    other = replace(SUBJECT, task="other")
    kept(tmp_path, other)
    assert (read(tmp_path), read(tmp_path, other)) == (None, FOUND)


def test_what_old_checks_found_is_removed_once_nobody_uses_it(tmp_path):
    kept(tmp_path, version="old")
    kept(tmp_path, version="used")
    past = time.time() - (MAX_AGE_DAYS + 1) * 24 * 3600
    for path in [*tmp_path.rglob("*.jsonl"), *tmp_path.iterdir()]:
        os.utime(path, (past, past))
    assert read(tmp_path, version="used") == FOUND
    kept(tmp_path, version="new")
    assert {path.name for path in tmp_path.iterdir()} == {"used", "new"}
