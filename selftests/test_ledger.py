import json
import os
from dataclasses import asdict, fields
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.core import OtvalUsageError
from pytest_otval.judge.model import Review
from pytest_otval.ledger import LATEST, SCHEMA, Ledger, Line, find_run, read_ledger, read_run, write_run

FULL = {
    "kind": "trial",
    "id": "datasets/demo/tasks/ä/task.toml::oracle#oracle/0",
    "task_digest": "d" * 64,
    "stage": "oracle",
    "attempt": 1,
    "verdict": "fail",
    "reason": "wrong-reward",
    "settings_digest": "s" * 64,
    "flavour": "userns",
    "network": "task",
    "headline": "oracle scored 0 \N{SNOWMAN}",
    "log": "last line",
    "known_bad": "known bad until 2030-01-31 (me): why",
    "attempts": {"passed": 1, "count": 2, "low": 0.1, "high": 0.9},
    "argument": "/elsewhere/tasks/a/task.toml::oracle",
    "reproduce": "apptainer exec x",
    "columns": {"Title": "value"},
    "rewards": {"reward": 0.5, "größe": 1.0},
    "score": 0.5,
    "harbor": {"rewards": {"reward": 0.5}, "error": "", "pass": True},
    "stricter": "reward-conflict",
    "image": {"key": "k", "content": "c", "base": "b"},
    "runtimes": ["r1"],
    "isolation": "fresh",
    "levels": {"pristine": "expected"},
    "scope": "phase",
    "model": "org/model",
    "trajectory": {"finish": "submitted", "flags": []},
    "judge": [json.loads(json.dumps(Review("instruction", "", "r", "m", ()).as_dict()))],
    "checks": [{"check": "x", "line": None}],
    "fixes": [{"path": "task.toml", "checks": ["x"], "diff": "", "trouble": ""}],
    "attacks": {"pth": "stopped"},
    "hermetic": {"keep": ["pkg:x"]},
    "seconds": {"agent": 0.25, "total": 1.5},
    "inputs": "0123456789abcdef",
    "cached_from": "run-1",
    "evidence": "evidence/demo",
    "retries": 2,
    "steps": [{"name": "", "left_alive": 0}],
    "time": "2026-01-01T00:00:00.000+00:00",
}


def line(**values):
    return Line(**{**FULL, **values})


def test_each_field_comes_back(tmp_path):
    assert set(FULL) == {field.name for field in fields(Line)}
    defaults = {field.name: field.default for field in fields(Line)}
    assert not [name for name, value in FULL.items() if value == defaults[name]], "a default would prove nothing"
    Ledger(tmp_path, "main").write(line())
    (found,) = read_ledger(tmp_path)
    assert found == {**{key: FULL[key] for key in FULL if key != "reason"}, "class": "wrong-reward", "v": SCHEMA}


def test_reason_is_called_class():
    values = json.loads(line().as_json())
    assert values["class"] == "wrong-reward"
    assert "reason" not in values


def test_time_is_filled_in():
    assert json.loads(line(time="").as_json())["time"].endswith("+00:00")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_refused(tmp_path, value):
    with pytest.raises(ValueError, match="JSON compliant"):
        Ledger(tmp_path, "main").write(line(score=value))
    assert list(read_ledger(tmp_path)) == []


def test_a_line_is_one_ascii_line(tmp_path):
    Ledger(tmp_path, "main").write(line(headline="a\nb\u2028c\x85" + "\ud800" + "ü" * 1_000_000))
    data = (tmp_path / "ledger" / "main.jsonl").read_bytes()
    assert data.isascii() and data.count(b"\n") == 1
    (found,) = read_ledger(tmp_path)
    assert len(found["headline"]) > 1_000_000


def test_two_writers_have_two_files(tmp_path):
    first, second = Ledger(tmp_path, "gw0"), Ledger(tmp_path, "gw1")
    for number in range(3):
        first.write(line(attempt=number))
        second.write(line(attempt=10 + number))
    assert [found["attempt"] for found in read_ledger(tmp_path)] == [0, 1, 2, 10, 11, 12]
    assert sorted(os.listdir(tmp_path / "ledger")) == ["gw0.jsonl", "gw1.jsonl"]


def test_half_last_line_of_a_killed_writer(tmp_path):
    ledger = Ledger(tmp_path, "main")
    ledger.write(line(attempt=1))
    ledger.write(line(attempt=2))
    ledger.path.write_bytes(ledger.path.read_bytes()[:-5])
    assert [found["attempt"] for found in read_ledger(tmp_path)] == [1]
    Ledger(tmp_path, "main").write(line(attempt=3))
    assert [found["attempt"] for found in read_ledger(tmp_path)] == [1, 3]


LINES = [line(attempt=number, headline=f"ü{number}").as_json() + "\n" for number in range(4)]
WHOLE = "".join(LINES).encode()


@given(st.integers(min_value=0, max_value=len(WHOLE)))
def test_any_cut_loses_at_most_the_last_line(cut):
    with TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder), "main")
        ledger.path.parent.mkdir()
        ledger.path.write_bytes(WHOLE[:cut])
        whole = WHOLE[:cut].count(b"\n")
        found = [values["attempt"] for values in read_ledger(Path(folder))]
        # A cut right before the newline loses nothing.
        assert found in ([*range(whole)], [*range(whole + 1)])
        ledger.write(line(attempt=99))
        assert [values["attempt"] for values in read_ledger(Path(folder))] == [*found, 99]


@given(st.binary(max_size=300))
def test_foreign_bytes_are_skipped(data):
    with TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder), "main")
        ledger.path.parent.mkdir()
        ledger.path.write_bytes(data)
        ledger.write(line(attempt=7))
        assert [values["attempt"] for values in read_ledger(Path(folder))] == [7]


def test_lines_of_another_schema_are_skipped(tmp_path):
    ledger = Ledger(tmp_path, "main")
    ledger.write(line())
    with ledger.path.open("a") as file:
        file.write(json.dumps({**json.loads(line().as_json()), "v": SCHEMA + 1}) + "\n[1]\n1\nnull\n")
    ledger.write(line())
    assert len(list(read_ledger(tmp_path))) == 2


def test_no_run_has_no_lines(tmp_path):
    assert list(read_ledger(tmp_path)) == []


def test_run_facts_come_back(tmp_path):
    write_run(tmp_path / "run", {"flavour": "userns", "name": "ü"})
    write_run(tmp_path / "run", {"flavour": "setuid"})
    assert read_run(tmp_path / "run") == {"v": SCHEMA, "flavour": "setuid"}
    assert os.listdir(tmp_path / "run") == ["run.json"]


@pytest.mark.parametrize("text", [None, "[]", "{", ""])
def test_run_facts_that_are_none(tmp_path, text):
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    with pytest.raises((OSError, ValueError)):
        read_run(tmp_path)


def test_line_is_plain_data():
    assert json.loads(json.dumps(asdict(line()))) == asdict(line())


def test_the_latest_run_is_the_one_that_began_last(tmp_path, monkeypatch):
    monkeypatch.setenv("OT_WORKSPACE", str(tmp_path))
    with pytest.raises(OtvalUsageError, match="there is no run"):
        find_run(LATEST)
    facts = {"old": {}, "new": {"run_settings": {"dry_run": False}}, "written": {"run_settings": {"dry_run": True}}}
    for number, (name, values) in enumerate(facts.items()):
        write_run(tmp_path / "runs" / name, values)
        os.utime(tmp_path / "runs" / name / "run.json", ns=(number, number))
    assert find_run(LATEST).name == "new"
    (tmp_path / "runs" / "new" / "run.json").write_text("{")
    os.utime(tmp_path / "runs" / "new" / "run.json", ns=(9, 9))
    assert find_run(LATEST).name == "new"
    assert find_run("x") == Path("x").absolute()
