"""Rows of tables, in all forms and however they are damaged."""

import json
import os

import pyarrow
import pytest
from pyarrow import parquet

from pytest_otval.sources.adapters import rows
from pytest_otval.sources.adapters.rows import read_rows
from pytest_otval.sources.files import SourceError
from selftests.sources.adapters.samples import write_jsonl, write_parquet

DATA = [{"a": "one", "b": ["x", "y"], "c": 1}, {"a": "two", "b": [], "c": 2}]


def values(source, columns=("a", "b")):
    return [dict(one.values) for one in read_rows(source, columns)]


def test_all_forms_give_the_same_rows(tmp_path):
    wanted = [{"a": one["a"], "b": one["b"]} for one in DATA]
    assert values(write_parquet(tmp_path / "a.parquet", DATA)) == wanted
    for source in (write_jsonl(tmp_path / "a.jsonl", DATA), tmp_path / "a.json"):
        (tmp_path / "a.json").write_text(json.dumps(DATA))
        assert [{"a": one["a"], "b": one["b"]} for one in values(source)] == wanted


def test_of_a_folder_the_parquet_files_are_taken_in_order(tmp_path):
    (tmp_path / "data").mkdir()
    write_parquet(tmp_path / "data/train-1.parquet", DATA[1:])
    write_parquet(tmp_path / "data/train-0.parquet", DATA[:1])
    (tmp_path / "dataset_info.json").write_text("{}")
    (tmp_path / ".part.parquet").write_text("")
    os.mkfifo(tmp_path / "data/train-2.parquet")
    assert [one.place for one in read_rows(tmp_path, ("a",))] == [f"data/train-{n}.parquet row 0" for n in (0, 1)]


def test_a_file_of_a_cache_may_be_a_link(tmp_path):
    (tmp_path / "snapshot").mkdir()
    for write, name in ((write_parquet, "a.parquet"), (write_jsonl, "a.jsonl")):
        (tmp_path / "snapshot" / name).symlink_to(write(tmp_path / f"blob-{name}", DATA))
        assert len(values(tmp_path / "snapshot" / name)) == 2


def test_a_row_that_cannot_be_read_does_not_end_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "MAX_LINE_BYTES", 100)
    source = tmp_path / "a.jsonl"
    lines = [b"{", b"[1]", b'"' + b"x" * 1000 + b'"', b"[" * 90, b"\xff\xff", b"", b'{"a": "good"}', b"x" * 1000]
    source.write_bytes(b"\n".join(lines))
    found = list(read_rows(source, ("a",)))
    problems = ["it is no JSON", "it is no object with fields", "it has more than 0 MiB"]
    problems += ["it is no JSON", "it is no JSON", "", "it has more than 0 MiB"]
    assert [one.problem for one in found] == problems
    assert found[5].values == {"a": "good"}


def test_a_text_that_is_no_utf8_is_the_problem_of_its_row(tmp_path):
    good, bad = pyarrow.array([b"one", b"\xff", b"two"]), "a text of it is no UTF-8"
    parquet.write_table(pyarrow.table({"a": good.cast(pyarrow.string(), safe=False)}), tmp_path / "a.parquet")
    assert [one.problem for one in read_rows(tmp_path / "a.parquet", ("a",))] == ["", bad, ""]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.parquet", b"PAR1 no parquet", "fetch it again"),
        ("a.json", b"{}", "holds no list of rows"),
        ("a.json", b"[", "is no JSON"),
        ("a.csv", b"a,b", "is no .parquet, .jsonl or .json file"),
    ],
)
def test_a_file_that_cannot_be_read_ends_the_run(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=said):
        list(read_rows(tmp_path / name, ("a",)))


def test_a_damaged_file_ends_the_run_in_one_line(tmp_path):
    source = write_parquet(tmp_path / "a.parquet", [{"a": str(n) * 50} for n in range(1000)], compression="none")
    data = bytearray(source.read_bytes())
    data[50:2000] = os.urandom(1950)
    source.write_bytes(data)
    with pytest.raises(SourceError) as failed:
        list(read_rows(source, ("a",)))
    assert "\n" not in str(failed.value)


def test_nothing_to_read_is_said(tmp_path):
    for source in (tmp_path, tmp_path / "absent"):
        with pytest.raises(SourceError, match=r"has no \.parquet"):
            list(read_rows(source, ("a",)))
