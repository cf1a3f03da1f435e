import json
import os
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.core import Conclusion
from pytest_otval.runtimes.record import (
    Package,
    Reference,
    Runtime,
    read_record,
    read_reference,
    records,
    write_record,
    write_reference,
)

RUNTIME = Runtime(
    "a" * 64,
    "python-verifier-0123456789ab",
    "/opt/otval/runtimes/python-verifier",
    7,
    "bootstrap:bookworm@0",
    "b" * 64,
    "bin/python3",
    "2026-01-01T00:00:00+00:00",
    {"pip": {"pytest": Package("9.2.0", "MIT")}},
    {"bin/python3": "c" * 64},
)


def test_a_manifest_is_read_as_it_was_written(tmp_path):
    write_record(tmp_path, RUNTIME)
    assert read_record(tmp_path, RUNTIME.checksum) == RUNTIME
    assert os.listdir(tmp_path) == [f"{RUNTIME.checksum}.json"]
    assert RUNTIME.name == "python-verifier"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"format": 1}', '{"format": 0, "checksum": "x"}', '{"format": 1, "checksum": "other"}'],
)
def test_what_is_no_manifest_is_none(tmp_path, text):
    (tmp_path / f"{RUNTIME.checksum}.json").write_text(text)
    assert read_record(tmp_path, RUNTIME.checksum) is None


@pytest.mark.parametrize(
    "values",
    [
        {"made": "9\x1b[2J"},
        {"made": "\ud800"},
        {"made": ""},
        {"made": "2026-13-01T00:00:00+00:00"},
        {"made": "2026-01-01\x1b00:00:00+00:00"},
        {"made": 9},
        {"base": []},
        {"base_key": None},
        {"bytes": -1},
        {"bytes": 1.5},
        {"python": 3},
        {"python": "../x"},
        {"packages": {"\x1b[2J": {}}},
        {"packages": {"pip": {"x": {"version": {}}}}},
        {"packages": {"pip": {"x": {"version": "1", "licence": 3}}}},
        {"packages": []},
        {"files": {"x": 3}},
        {"files": {"x": "short"}},
        {"files": ["x"]},
    ],
    ids=repr,
)
def test_a_manifest_with_a_field_of_another_form_is_none(tmp_path, values):
    write_record(tmp_path, RUNTIME)
    file = tmp_path / f"{RUNTIME.checksum}.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))
    assert read_record(tmp_path, RUNTIME.checksum) is None
    assert list(records(tmp_path)) == []


def test_a_manifest_of_another_file_is_none(tmp_path):
    write_record(tmp_path, RUNTIME)
    other = tmp_path / f"{'d' * 64}.json"
    (tmp_path / f"{RUNTIME.checksum}.json").rename(other)
    assert read_record(tmp_path, "d" * 64) is None


def test_records_are_by_name_the_newest_first(tmp_path):
    old, new = "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:01+00:00"
    for number, (name, made) in enumerate([("b", old), ("a", old), ("a", new)]):
        write_record(tmp_path, replace(RUNTIME, checksum=str(number) * 64, id=f"{name}-{'0' * 12}", made=made))
    (tmp_path / "toolbox.json").write_text("{}")
    assert [(one.name, one.made) for one in records(tmp_path)] == [("a", new), ("a", old), ("b", old)]
    assert list(records(tmp_path / "missing")) == []


def test_a_reference_is_read_as_it_was_written(tmp_path):
    reference = Reference.of(RUNTIME)
    write_reference(tmp_path / "x.json", reference)
    assert read_reference(tmp_path / "x.json") == reference
    assert json.loads((tmp_path / "x.json").read_text())["checksum"] == f"sha256:{RUNTIME.checksum}"
    assert str(reference) == f"{RUNTIME.id}@sha256:{RUNTIME.checksum}"
    assert read_reference(tmp_path / "missing.json") is None


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "tools"},
        {"id": "../../etc-0123456789ab"},
        {"id": 3},
        {"checksum": "sha256:abc"},
        {"checksum": None},
        {"path": "/"},
        {"path": "/a/../b"},
        {"path": "/a b"},
        {"path": "/a,upperdir=x"},
        {"path": "/a:b"},
        {"path": "relative"},
        {"path": "/opt/./x"},
    ],
)
def test_what_names_no_runtime_is_refused(tmp_path, changes):
    values = {"id": RUNTIME.id, "checksum": f"sha256:{RUNTIME.checksum}", "path": RUNTIME.path, **changes}
    (tmp_path / "x.json").write_text(json.dumps(values))
    with pytest.raises(Conclusion, match="names no runtime") as caught:
        read_reference(tmp_path / "x.json")
    assert caught.value.reason == "bad-task"
    assert "\n" not in caught.value.headline


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "large"])
def test_a_reference_that_is_no_small_file_is_refused(tmp_path, kind):
    file = tmp_path / "x.json"
    if kind == "link":
        write_reference(tmp_path / "goal.json", Reference.of(RUNTIME))
        file.symlink_to("goal.json")
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.write_text(" " * 100_000)
    with pytest.raises(Conclusion) as caught:
        read_reference(file)
    assert caught.value.reason == "bad-task"


@given(st.one_of(st.binary(max_size=50), st.recursive(st.none() | st.text(max_size=5), st.lists).map(json.dumps)))
def test_any_content_is_a_reference_or_refused(tmp_path_factory, content):
    file = tmp_path_factory.getbasetemp() / "any.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(Conclusion):
        read_reference(file)
