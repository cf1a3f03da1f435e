"""A hint that survives anything: damaged files, other runs at the same time."""

import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.history import Record, learn, read_history


def answer(task, stage="oracle", total=1.0, key="k", verdict="pass", dataset="demo"):
    return {
        "id": f"datasets/{dataset}/tasks/{task}/task.toml::{stage}",
        "stage": stage,
        "verdict": verdict,
        "seconds": {} if total is None else {"total": total, "waited": 99.0},
        "image_key": key,
    }


def test_what_was_learnt_is_read(tmp_path):
    learn(tmp_path / "new", [answer("a", "build", 12.34567), answer("a", "oracle", 2), answer("b", dataset="other")])
    assert read_history(tmp_path / "new", "demo") == {"a": Record({"build": 12.346, "oracle": 2}, "k")}
    assert read_history(tmp_path / "new", "other") == {"b": Record({"oracle": 1.0}, "k")}
    assert read_history(tmp_path, "none") == {}


def test_later_runs_add(tmp_path):
    learn(tmp_path, [answer("a", "build", 60), answer("b", "build", 5)])
    learn(tmp_path, [answer("a", "build", 0.1, "new"), answer("a", "noop", 3, "")])
    assert read_history(tmp_path, "demo") == {
        "a": Record({"build": 0.1, "noop": 3}, "new"),
        "b": Record({"build": 5}, "k"),
    }


@pytest.mark.parametrize(
    "told",
    [
        answer("a", verdict="error"),
        {**answer("a"), "id": "datasets/demo/dataset.toml::static"},
        answer("a", total=float("nan"), key=""),
        answer("a", total=None, key=""),
    ],
)
def test_what_tells_nothing(tmp_path, told):
    learn(tmp_path, [told])
    assert all(record == Record() for record in read_history(tmp_path, "demo").values())


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["v", "tasks", "a", "seconds", "image"]), inner)
    ),
    max_leaves=8,
)
tasks = st.dictionaries(
    st.text(max_size=3), st.fixed_dictionaries({"seconds": json_values, "image": json_values}) | json_values
)
files = st.binary(max_size=30) | st.one_of(
    json_values, st.fixed_dictionaries({"v": st.just(1), "tasks": tasks | json_values})
).map(lambda value: json.dumps(value).encode())


@given(files)
def test_any_file_is_read_or_ignored_and_written_anew(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("history")
    (folder / "demo.json").write_bytes(data)
    for record in read_history(folder, "demo").values():
        assert isinstance(record.image, str) and all(value >= 0 for value in record.seconds.values())
    learn(folder, [answer("learnt", total=4)])
    assert read_history(folder, "demo")["learnt"] == Record({"oracle": 4.0}, "k")


def test_two_runs_at_a_time_lose_nothing(tmp_path):
    def run(name):
        for number in range(10):
            learn(tmp_path, [answer(f"{name}-{number}")])

    threads = [threading.Thread(target=run, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_history(tmp_path, "demo")) == 30
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".lock"}


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="Not a directory"):
        learn(tmp_path / "file" / "history", [answer("a")])
