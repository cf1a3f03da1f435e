"""Rows of attempts, and their Parquet files."""

import os

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from pytest_otval.core import OtvalUsageError
from pytest_otval.llm.attempts import Attempt, flags_of, read_attempts, tokens_of, write_attempts
from pytest_otval.llm.chat import Usage
from pytest_otval.llm.trajectory_statistics import Statistics, statistics_of
from selftests.llm.conversations import conversation

STATISTICS = statistics_of(conversation("ls", "cat /tests/a", "curl https://example.com", "pytest"))
FULL = Attempt(
    "demo",
    "task",
    "org/model-7b",
    3,
    cluster="repository",
    reward=0.5,
    solved=True,
    finish="submitted",
    prompt_tokens=1000,
    completion_tokens=50,
    usd=0.25,
    seconds={"agent": 1.5, "total": 2.0},
    changed_files=0,
    flags=("touched-tests", "solved-without-change"),
    statistics=STATISTICS,
)
PLAIN = Attempt("demo", "task", "org/model-7b", 4, valid=False)


def test_rows_come_back_as_they_were(tmp_path):
    path = tmp_path / "attempts.parquet"
    write_attempts(path, [FULL, PLAIN])
    assert list(read_attempts([path, path])) == [FULL, PLAIN, FULL, PLAIN]
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_a_file_without_rows(tmp_path):
    write_attempts(tmp_path / "a.parquet", [])
    assert list(read_attempts([tmp_path / "a.parquet"])) == []
    assert list(read_attempts([])) == []


def test_more_rows_than_are_in_memory_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("pytest_otval.llm.attempts.ROW_GROUP", 3)
    rows = [Attempt("demo", "task", "model", number) for number in range(10)]
    write_attempts(tmp_path / "a.parquet", rows)
    assert parquet.ParquetFile(tmp_path / "a.parquet").num_row_groups == 4
    assert list(read_attempts([tmp_path / "a.parquet"])) == rows


def test_the_file_is_there_when_all_rows_are(tmp_path):
    def rows():
        yield FULL
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_attempts(tmp_path / "a.parquet", rows())
    assert list(tmp_path.iterdir()) == []


def test_what_a_column_cannot_hold(tmp_path):
    odd = Attempt("d\udcff", "\x1b[31m\0", "m", 0, prompt_tokens=10**30, flags=("\ud800",), seconds={"\ud800": 1.0})
    write_attempts(tmp_path / "a.parquet", [odd])
    (found,) = read_attempts([tmp_path / "a.parquet"])
    assert (found.dataset, found.task, found.flags) == ("d?", "\x1b[31m\0", ("?",))
    assert (found.prompt_tokens, found.seconds) == (2**63 - 1, {"?": 1.0})


@settings(max_examples=20, deadline=None)
@given(
    st.builds(
        Attempt,
        st.text(max_size=5),
        st.text(max_size=5),
        st.text(max_size=5),
        st.integers(0, 9),
        reward=st.none() | st.floats(allow_nan=False),
        solved=st.booleans(),
        seconds=st.dictionaries(st.text(max_size=3), st.floats(allow_nan=False), max_size=2),
        flags=st.lists(st.text(max_size=3), max_size=2).map(tuple),
        changed_lines=st.none() | st.integers(0, 99),
        statistics=st.builds(Statistics, verbs=st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=2)),
    )
)
def test_any_row_comes_back(tmp_path_factory, row):
    path = tmp_path_factory.getbasetemp() / "any.parquet"
    write_attempts(path, [row])
    assert list(read_attempts([path])) == [row]


def rewritten(path, change):
    """Write a file of one row whose table was changed."""
    write_attempts(path, [FULL])
    parquet.write_table(change(parquet.read_table(path)), path)
    return path


def test_columns_of_other_versions(tmp_path):
    path = rewritten(
        tmp_path / "a.parquet",
        lambda table: table.drop_columns(["usd", "verbs"]).append_column("new", pyarrow.array(["x"])),
    )
    (found,) = read_attempts([path])
    assert (found.usd, found.statistics.verbs, found.task) == (None, {}, "task")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table.drop_columns(["task"]), "has no column task"),
        (lambda table: table.set_column(3, "attempt", pyarrow.array(["x"])), "column attempt is of type string"),
    ],
)
def test_files_of_something_else(tmp_path, change, said):
    with pytest.raises(OtvalUsageError, match=said) as raised:
        list(read_attempts([rewritten(tmp_path / "a.parquet", change)]))
    assert "\n" not in str(raised.value)


def test_no_parquet_files(tmp_path):
    (tmp_path / "text").write_text("no\nparquet")
    write_attempts(tmp_path / "cut", [FULL])
    data = (tmp_path / "cut").read_bytes()
    (tmp_path / "cut").write_bytes(data[: len(data) // 2])
    (tmp_path / "broken").write_bytes(data[:4] + b"\xff" * 300 + data[304:])
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("text", "cut", "broken", "fifo", "link", ".", "missing"):
        with pytest.raises(OtvalUsageError) as raised:
            list(read_attempts([tmp_path / name]))
        assert "\n" not in str(raised.value)


def test_flags():
    assert flags_of(STATISTICS, solved=False, truncated=True, changed_files=0) == ("touched-tests",)
    assert flags_of(Statistics(), solved=True, truncated=True, changed_files=0) == (
        "solved-without-change",
        "solved-after-truncation",
    )
    assert flags_of(Statistics(), solved=True, truncated=False, changed_files=None) == ()


def test_tokens_of_answers():
    found = tokens_of([Usage(10, 2, cached=5, usd=0.5), Usage(20, 3, reasoning=1, usd=0.25)])
    assert found == {
        "prompt_tokens": 30,
        "completion_tokens": 5,
        "cached_tokens": 5,
        "reasoning_tokens": 1,
        "usd": 0.75,
    }
    assert tokens_of([Usage(usd=0.5), Usage()])["usd"] is None
    assert Attempt("d", "t", "m", 0, prompt_tokens=30, completion_tokens=5).tokens == 35
