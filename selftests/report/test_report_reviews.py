"""What the summary and the JSON lines say of reviews."""

import json
from dataclasses import replace

import pytest

from pytest_otval.core import OtvalUsageError, node_id
from pytest_otval.glue.lines import for_reports
from pytest_otval.judge.model import NOT_MEASURED, Review
from pytest_otval.report.judge_summary import judge_lines, kappa_of
from pytest_otval.report.results import read_results, row_of
from pytest_otval.report.reviews import reviewed, write_reviews
from selftests.report.ledgers import line, make_run
from selftests.report.reviewed import fail, judged, judgement, review
from selftests.report.talks import EVIL

SPLIT = judgement("brittle", "uncertain", "split", ("pass", "fail", "uncertain"))
UNQUOTED = judgement("weak", "uncertain", votes=("uncertain", "uncertain"), dropped="quote not found: x")
LINES = (
    judged(review(fail("weak"), SPLIT, judgement("fine", votes=("pass", "pass")))),
    judged(review(UNQUOTED, fail("brittle", "refuted"), judgement("fine", "not_applicable")), task="b"),
    judged(review(fail("hack", "advisory"), kind="trace", classification="hack"), stage="judge_trace"),
)


def told(*lines):
    return [text.text for text in judge_lines(map(row_of, (one.as_dict() for one in lines)))]


def test_criterion_by_outcome():
    lines = told(*LINES)
    assert lines[0] == "reviews of tasks by j: 2, kappa 0.45; 4 answers, 2 from the cache, 2000 tokens, 0.0200 USD"
    assert lines[1:4] == [
        "  criterion  uncertain  unquoted  split  fail  refuted  stands",
        "  weak               1         1      0     1        0       1",
        "  brittle            1         0      1     1        1       0",
    ]
    assert lines[4] == "  1 more criteria: pass or not applicable"
    assert lines[5].startswith("reviews of attempts by j: 1; 2 answers")
    assert lines[8] == "        with their rewards they are: hack 1"


def test_where_all_is_well_and_nothing_is_priced():
    assert told(judged(review(judgement("fine"), spending=review().spending.__class__()))) == [
        "reviews of tasks by j: 1; 0 answers, 0 from the cache, 0 tokens",
        "  all 1 criteria: pass or not applicable",
    ]
    assert told(line()) == []


def test_it_is_said_which_fails_nobody_measured():
    measured = replace(fail("clear"), measured="precision 1.00")
    fails = [replace(fail(name), measured=NOT_MEASURED) for name in ("weak", f"brittle{EVIL}")]
    *_, last = told(judged(review(measured, *fails)))
    assert last.startswith("  fails of criteria that were not measured with a model (judge calibrate): weak, brittle")
    assert last.isprintable()


def test_kappa_is_of_all_votes_together():
    both = [judgement(str(number), votes=("pass", "pass")) for number in range(3)]
    agreed = judgement("x", "fail", votes=("fail", "fail"))
    assert kappa_of(reviewed(judged(review(*both), review(agreed)).as_dict())) == 1
    assert kappa_of(reviewed(judged(review(*both)).as_dict())) is None


def test_reports_of_pytest_carry_as_much():
    """But none of the words."""
    for one in (*LINES, judged(review(replace(fail("weak"), measured=NOT_MEASURED)))):
        carried = for_reports(one)
        assert reviewed(json.loads(json.dumps(carried))) == reviewed(one.as_dict())
        assert "exit 0" not in json.dumps(carried)


def test_names_of_strangers_steer_no_terminal():
    lines = told(judged(review(fail(EVIL), model=EVIL, classification=EVIL)))
    assert all(one.isprintable() for one in lines)


def test_reviews_as_lines(tmp_path):
    path = tmp_path / "review.jsonl"
    results = read_results(make_run(tmp_path / "run", line(), *LINES))
    assert write_reviews(results, path) == 3
    values = [json.loads(one) for one in path.read_text().splitlines()]
    assert [one["id"].rpartition("::")[2] for one in values] == ["judge_task", "judge_trace", "judge_task"]
    about = {name: values[0].pop(name) for name in ("id", "dataset", "task", "class", "time", "task_digest")}
    assert about["id"] == node_id("demo", "a", "judge_task")
    assert Review.from_dict(values[0]) == Review.from_dict(LINES[0].judge[0])


def test_a_ledger_that_no_version_wrote(tmp_path):
    with pytest.raises(OtvalUsageError, match="no version of ours wrote"):
        read_results(make_run(tmp_path / "run", line(judge=[{"kind": "x"}])))


@pytest.mark.parametrize("name", ["answers", "cached", "prompt", "usd"])
def test_reviews_that_no_version_of_ours_wrote(tmp_path, name):
    values = review(fail("weak")).as_dict()
    odd = {**values, "spending": {**values["spending"], name: "\x1b[31m"}}
    with pytest.raises(OtvalUsageError, match="no version of ours wrote"):
        read_results(make_run(tmp_path, replace(judged(), judge=[odd])))


def test_a_number_that_is_none_is_no_json(tmp_path):
    run = make_run(tmp_path, judged(review(fail("weak"))))
    file = run / "ledger" / "main.jsonl"
    file.write_text(file.read_text().replace('"kappa": null', '"kappa": NaN'))
    with pytest.raises(OtvalUsageError, match="no version of ours wrote the review of"):
        write_reviews(read_results(run), tmp_path / "reviews.jsonl")
