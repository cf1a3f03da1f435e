"""Values that were kept before."""

import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_otval import kept as module
from pytest_otval.kept import BATCH, KEY_CHARS, MAX_AGE_DAYS, Kept

VALUE = {"text": "it's \u00e9 \x1b\n", "list": [1, None, 0.5]}


def key(number=0):
    return f"{number:0{KEY_CHARS}x}"


def keep(folder, number=0, value=VALUE, version="v", group="data"):
    kept = Kept(folder, version)
    kept.put(group, key(number), value)
    kept.close()


def read(folder, number=0, version="v", group="data"):
    kept = Kept(folder, version)
    found = kept.get(group, key(number))
    kept.close()
    return found


@pytest.mark.parametrize("value", [VALUE, [], "", 0])
def test_what_was_kept_is_found_by_another_process(tmp_path, value):
    keep(tmp_path, value=value)
    assert read(tmp_path) == value


def test_other_keys_groups_and_versions_find_nothing_of_it(tmp_path):
    keep(tmp_path)
    assert (read(tmp_path, 1), read(tmp_path, group="other"), read(tmp_path, version="w")) == (None, None, None)


def test_the_same_process_finds_what_waits_and_what_was_written(tmp_path):
    kept = Kept(tmp_path, "v")
    assert kept.get("data", key()) is None
    kept.put("data", key(), VALUE)
    assert kept.get("data", key()) == VALUE
    assert not list(tmp_path.rglob("*.jsonl"))
    kept.flush()
    assert kept.get("data", key()) == VALUE
    kept.close()


def test_what_others_write_meanwhile_is_found(tmp_path):
    kept = Kept(tmp_path, "v")
    for number in range(3):
        assert kept.get("data", key(number)) is None
        keep(tmp_path, number)
        assert kept.get("data", key(number)) == VALUE
    kept.close()


def test_a_line_that_another_is_still_writing_is_found_later(tmp_path):
    keep(tmp_path)
    (file,) = tmp_path.rglob("*.jsonl")
    content = file.read_bytes()
    file.write_bytes(content[:-5])
    kept = Kept(tmp_path, "v")
    assert kept.get("data", key()) is None
    file.write_bytes(content)
    assert kept.get("data", key()) == VALUE
    kept.close()


def test_the_latest_of_two_counts(tmp_path):
    keep(tmp_path)
    keep(tmp_path, value=[])
    assert read(tmp_path) == []


def test_many_values_are_few_files_and_few_writes(tmp_path, monkeypatch):
    writes = []
    real = os.write
    monkeypatch.setattr(module.os, "write", lambda handle, data: writes.append(data) or real(handle, data))
    kept = Kept(tmp_path, "v")
    for number in range(3 * BATCH + 1):
        kept.put("data", key(number), VALUE)
    kept.close()
    assert len(writes) == 4
    assert len(list(tmp_path.rglob("*.jsonl"))) == 1
    assert read(tmp_path, 7) == VALUE


@settings(max_examples=60)
@given(st.data())
def test_a_torn_or_changed_file_only_forgets(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("cache")
    for number in range(3):
        keep(folder, number)
    (file,) = folder.rglob("*.jsonl")
    content = bytearray(file.read_bytes())
    start = data.draw(st.integers(0, len(content)))
    content[start : data.draw(st.integers(start, len(content)))] = data.draw(st.binary(max_size=40))
    file.write_bytes(content)
    keep(folder, 3)
    for number in range(3):
        assert read(folder, number) in (VALUE, None)
    assert read(folder, 3) == VALUE


@pytest.mark.parametrize("name", ["../up", "a/b", "", "..", "x" * 300, "\udcff"])
def test_no_name_leads_out_of_the_folder(tmp_path, name):
    keep(tmp_path / "cache", group=name)
    if len(name) < 200:
        assert read(tmp_path / "cache", group=name) == VALUE
    assert [path.name for path in tmp_path.iterdir()] in (["cache"], [])


def test_a_link_is_not_followed(tmp_path):
    keep(tmp_path / "real")
    (tmp_path / "cache" / "v").mkdir(parents=True)
    (tmp_path / "cache" / "v" / "data.jsonl").symlink_to(tmp_path / "real" / "v" / "data.jsonl")
    assert read(tmp_path / "cache") is None


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    keep(tmp_path / "file")
    assert read(tmp_path / "file") is None


def test_a_file_that_has_grown_too_large_is_begun_anew(tmp_path, monkeypatch):
    keep(tmp_path)
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 10)
    keep(tmp_path, 1)
    assert (read(tmp_path), read(tmp_path, 1)) == (None, VALUE)


def test_what_old_versions_kept_is_removed_once_nobody_uses_it(tmp_path):
    keep(tmp_path, version="old")
    keep(tmp_path, version="used")
    past = time.time() - (MAX_AGE_DAYS + 1) * 24 * 3600
    for path in [*tmp_path.rglob("*.jsonl"), *tmp_path.iterdir()]:
        os.utime(path, (past, past))
    assert read(tmp_path, version="used") == VALUE
    keep(tmp_path, version="new")
    assert {path.name for path in tmp_path.iterdir()} == {"used", "new"}
