"""Answers of earlier runs: the latest over the very same question, whatever the order of files and lines."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.ledger import SCHEMA
from pytest_otval.stages.answers import EarlierAnswers, may_be_reused

LINES = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from("ab"),
            "task_digest": st.sampled_from("12"),
            "inputs": st.sampled_from(["", "x"]),
            "settings_digest": st.sampled_from("s~"),
            "verdict": st.sampled_from(["pass", "fail", "error", "n/a"]),
            "kind": st.sampled_from(["result", "result", "trial"]),
            "attempts": st.sampled_from([None, {"count": 3}]),
            "time": st.integers(0, 10**6).map(str),
            "torn": st.sampled_from([False, False, False, True]),
        }
    ),
    unique_by=lambda line: line["time"],
)


def write(path: Path, lines) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        for line in lines:
            values = {"v": SCHEMA, "class": "expected", **{key: value for key, value in line.items() if key != "torn"}}
            text = json.dumps(values)
            file.write(text[: len(text) // 2] + "\n" if line["torn"] else text + "\n")
        file.write('{"v": 1, "kind": "result", "id": "a"')


@given(lines=LINES, cut=st.integers(0, 20), wanted=st.tuples(*map(st.sampled_from, ("ab", "12", ["", "x"], [1, 3]))))
def test_the_latest_that_is_no_error_and_over_as_many_attempts_counts(tmp_path_factory, lines, cut, wanted):
    root = tmp_path_factory.mktemp("runs")
    write(root / "one" / "ledger" / "main.jsonl", lines[:cut])
    write(root / "two" / "ledger" / "gw0.jsonl", lines[cut:])
    earlier = EarlierAnswers([root / "one", root / "two", root / "none"], "s")
    id, digest, inputs, count = wanted
    right = [
        line
        for line in lines
        if line["kind"] == "result"
        and not line["torn"]
        and line["verdict"] != "error"
        and line["settings_digest"] == "s"
    ]
    of_task = [line for line in right if (line["id"], line["task_digest"]) == (id, digest)]
    assert earlier.has_some(id, digest) is bool(of_task)
    attempts = {"count": 3} if count == 3 else None
    same = [line for line in of_task if (line["inputs"], line["attempts"]) == (inputs, attempts)]
    expected = max(same, key=lambda line: line["time"], default=None)
    found = earlier.of(id, digest, inputs, count)
    assert (found is None) is (expected is None)
    if found is not None:
        assert found[1]["time"] == expected["time"]
        assert found[0] == root / ("one" if expected in lines[:cut] else "two")


def test_what_hangs_on_the_machine_is_not_reused():
    line = {"verdict": "fail", "class": "wrong-reward"}
    assert may_be_reused(line, "x")
    assert not may_be_reused(line, "")
    assert not may_be_reused({"verdict": "n/a", "class": "no-gpu"}, "x")
    assert not may_be_reused({"verdict": "fail", "class": "env-missing"}, "x")
