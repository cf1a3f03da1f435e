"""From a run's ledger to rows."""

import json

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.glue.lines import for_reports
from pytest_otval.report.results import read_results, row_of, split_id
from selftests.report.ledgers import IMAGE, line, make_run


def test_rows_stand_in_the_order_of_tasks_and_stages(tmp_path):
    given = [line("b", "noop"), line("a", "static"), line("a", "custom"), line("a", "build"), line(None, "static")]
    rows = read_results(make_run(tmp_path, *given)).rows
    assert [(row.task, row.stage) for row in rows] == [
        ("", "static"),
        ("a", "static"),
        ("a", "build"),
        ("a", "custom"),
        ("b", "noop"),
    ]


def test_the_latest_line_of_an_item_counts(tmp_path):
    early, late = "2026-01-01T00:00:00.000+00:00", "2026-01-01T00:00:00.001+00:00"
    run = make_run(
        tmp_path,
        line("a", reason="wrong-reward", time=early),
        line("b", reason="killed", time=late),
        line("c", time=early),
        line("c", reason="wrong-reward", time=early),
        gw0=[line("a", time=late), line("b", time=early)],
    )
    assert {row.task: row.reason for row in read_results(run).rows} == {
        "a": "expected",
        "b": "killed",
        "c": "wrong-reward",
    }


def test_trials_and_half_lines_are_left_out(tmp_path):
    run = make_run(tmp_path, line("a"), line("b", kind="trial"))
    whole = (run / "ledger/main.jsonl").read_bytes()
    for cut in range(len(line("c").as_json())):
        (run / "ledger/main.jsonl").write_bytes(whole + line("c").as_json().encode()[:cut])
        results = read_results(run)
        assert [row.task for row in results.rows] == ["a"]
    (run / "ledger/main.jsonl").write_bytes(b'[]\n"x"\n{"v": 99}\n\xff\n' + whole)
    assert [entry["id"] for entry in read_results(run).lines()] == [line("a").id]


def test_lines_are_those_of_the_rows(tmp_path):
    run = make_run(tmp_path, line("b", headline="of b"), gw1=[line("a", headline="of a"), line("c", headline="of c")])
    results = read_results(run)
    assert [one["headline"] for one in results.lines()] == ["of a", "of b", "of c"]
    chosen = results.where(row.task != "b" for row in results.rows)
    assert [one["headline"] for one in chosen.lines()] == ["of a", "of c"] == [row.headline for row in chosen.rows]


@pytest.mark.parametrize(
    ("fields", "unexpected"),
    [
        ({"reason": "expected"}, False),
        ({"reason": "wrong-reward"}, True),
        ({"reason": "killed"}, True),
        ({"reason": "image-failed"}, True),
        ({"reason": "compose"}, False),
        ({"reason": "expected", "known_bad": "why"}, True),
        ({"reason": "wrong-reward", "known_bad": "why"}, False),
        ({"reason": "image-failed", "known_bad": "why"}, False),
        ({"reason": "killed", "known_bad": "why"}, True),
        ({"reason": "compose", "known_bad": "why"}, False),
    ],
)
def test_what_a_person_has_to_look_at(fields, unexpected):
    assert row_of(line(**fields).as_dict()).unexpected is unexpected


def test_an_answer_of_a_report_gives_the_row_of_its_line():
    whole = line(
        reason="flaky",
        headline="1 of 3",
        log="one\nlast\n",
        image=IMAGE,
        score=0.5,
        attempts={"passed": 1, "count": 3, "low": 0.1, "high": 0.8},
        known_bad="why",
        stricter="wrong-reward",
        evidence="evidence/x",
        columns={"Size": "3"},
        checks=[{"severity": "warning"}, {"severity": "error"}],
    )
    row, from_answer = row_of(whole.as_dict()), row_of(for_reports(whole))
    only_in_ledger = {
        "image_content", "retries", "isolation", "flavour", "network", "task_digest", "settings_digest", "time",
    }  # fmt: skip
    for name in set(row.__slots__) - only_in_ledger:
        assert getattr(row, name) == getattr(from_answer, name), name


@pytest.mark.parametrize(
    ("id", "parts"),
    [
        ("datasets/d/tasks/t/task.toml::teacher[m-3]", ("d", "t", "teacher[m-3]")),
        ("datasets/d/dataset.toml::static", ("d", "", "static")),
        ("tests/test_x.py::test_y", ("", "tests/test_x.py::test_y", "")),
    ],
)
def test_ids_have_parts(id, parts):
    assert split_id(id) == parts


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(OtvalUsageError, match="is no run folder"):
        read_results(tmp_path)
    make_run(tmp_path, line(kind="trial"))
    with pytest.raises(OtvalUsageError, match="has no results yet"):
        read_results(tmp_path)
    strange = {key: value for key, value in line().as_dict().items() if key != "stage"}
    (tmp_path / "ledger/main.jsonl").write_text(json.dumps(strange) + "\n")
    with pytest.raises(OtvalUsageError, match=r"main\.jsonl has a result line .*'stage'"):
        read_results(tmp_path)
