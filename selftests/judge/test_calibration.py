"""Calibrations and labels are kept in lines that are only added."""

import json
import os
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.judge.calibration import NAME as CALIBRATIONS
from pytest_otval.judge.calibration import (
    Calibration,
    add_calibration,
    latest,
    measured,
    table_lines,
)
from pytest_otval.judge.labels import NAME as LABELS
from pytest_otval.judge.labels import Label, add_label, agreement, labels
from pytest_otval.judge.model import NOT_MEASURED, Criterion, Rubric
from pytest_otval.judge.records import append, read
from pytest_otval.judge.tally import Tally

RUBRIC = Rubric(
    "instruction",
    (Criterion("right", "?", blocking=True), Criterion("loud", "?", blocking=True), Criterion("unseeded", "?")),
)
CALIBRATION = Calibration(
    model="org/judge",
    endpoint="http://127.0.0.1:8000/v1",
    kind="instruction",
    rubric=RUBRIC.digest,
    votes=1,
    floor=0.7,
    untouched=9,
    alarmed=9,
    seeded=18,
    unreadable=1,
    time="2026-01-02T03:04:05+00:00",
    tallies=(
        Tally("right", found=9, quiet=9, placed=8, agreed=2),
        Tally("loud", found=9, raised=9),
        Tally("unseeded", raised=9),
    ),
)
LABEL = Label(
    id="datasets/d::t::judge_task",
    subject="",
    task_digest="sha256:1",
    criterion="right",
    model="org/judge",
    rubric=RUBRIC.digest,
    outcome="fail",
    finding=True,
    agrees=True,
    by="ada",
    note="",
    run="/runs/1",
    time="2026-01-02T03:04:05+00:00",
)


def test_what_is_below_the_floor_is_advisory():
    assert CALIBRATION.advisory == {"loud"}
    assert replace(CALIBRATION, floor=0.0).advisory == set()
    assert replace(CALIBRATION, floor=0.75).advisory == {"right", "loud"}


def test_it_is_told_who_was_measured_and_what_was_not():
    told = CALIBRATION.told("right")
    assert told == (
        "precision 1.00 (9/9, 0.70-1.00), recall 1.00 (9/9, 0.70-1.00) "
        "(org/judge at http://127.0.0.1:8000/v1, 2026-01-02)"
    )
    assert "; below 0.7, so it decides nothing (org/judge at " in CALIBRATION.told("loud")
    assert measured(None, "right") == NOT_MEASURED
    assert CALIBRATION.told("unseeded") == CALIBRATION.told("unknown") == NOT_MEASURED == "not measured with a model"


def test_the_table():
    assert table_lines(CALIBRATION, RUBRIC) == [
        f"measured by org/judge at http://127.0.0.1:8000/v1, up to 1 votes, rubric {RUBRIC.digest}",
        "reviews: 9 of what is sound, 18 of one fault each, 1 unreadable and in no count",
        "sound, with a finding that blocks: 1.00 (9/9, 0.70-1.00)",
        "criterion     precision                recall                   kappa  assured  placed  labels",
        "right         1.00 (9/9, 0.70-1.00)    1.00 (9/9, 0.70-1.00)    1.00   0.70     8/9     1.00 (2/2, 0.34-1.00)",
        "loud          0.50 (9/18, 0.29-0.71)   1.00 (9/9, 0.70-1.00)    0.00   0.41     0/9     -",
        "unseeded      -                        -                        -      -        -       -",
        "all measured  0.67 (18/27, 0.48-0.81)  1.00 (18/18, 0.82-1.00)  0.50   0.54     8/18    1.00 (2/2, 0.34-1.00)",
        "not measured with a model: unseeded",
        "decided by a trial in runs, and by the judge alone here: none",
        "only advisory with this model and rubric, below 0.7: loud",
    ]


def test_the_last_of_a_model_and_rubric_counts(tmp_path):
    assert latest(tmp_path, "org/judge", RUBRIC.digest) is None
    add_calibration(tmp_path / "judges", CALIBRATION)
    add_calibration(tmp_path / "judges", replace(CALIBRATION, model="other"))
    add_calibration(tmp_path / "judges", replace(CALIBRATION, floor=0.75))
    assert latest(tmp_path / "judges", "org/judge", RUBRIC.digest) == replace(CALIBRATION, floor=0.75)
    assert latest(tmp_path / "judges", "org/judge", "another") is None


def test_lines_that_are_none_are_left_out(tmp_path):
    add_calibration(tmp_path, CALIBRATION)
    with (tmp_path / CALIBRATIONS).open("ab") as file:
        file.write(b'\xff\n[1]\n"x"\n{"model": "org/judge", "rubric": "%s"}\n' % RUBRIC.digest.encode())
        file.write(b"[" * 100_000 + b"\n" + json.dumps({**CALIBRATION.as_dict(), "tallies": 3}).encode() + b"\n{")
    assert latest(tmp_path, "org/judge", RUBRIC.digest) == CALIBRATION
    # A line that was cut off takes no other with it.
    add_calibration(tmp_path, replace(CALIBRATION, votes=3))
    assert latest(tmp_path, "org/judge", RUBRIC.digest).votes == 3


@pytest.mark.parametrize("odd", [None, [], {}, -1, 1e308, float("nan"), 10**400], ids=repr)
@pytest.mark.parametrize("name", ["floor", "votes", "time", "found", "quiet", "agreed", "criterion"])
def test_calibrations_of_another_form_are_left_out(tmp_path, name, odd):
    add_calibration(tmp_path, CALIBRATION)
    values = {**CALIBRATION.as_dict(), "floor": 0.5}
    tally = values["tallies"][0]
    (values if name in values else tally)[name] = odd
    with (tmp_path / CALIBRATIONS).open("a") as file:
        file.write(json.dumps(values) + "\n")
    assert latest(tmp_path, "org/judge", RUBRIC.digest) == CALIBRATION


def test_records_are_not_written_through_a_link(tmp_path):
    (tmp_path / "target").write_text("")
    (tmp_path / "records").symlink_to(tmp_path / "target")
    with pytest.raises(OSError):
        append(tmp_path / "records", {})
    assert (tmp_path / "target").read_text() == ""


@given(st.lists(st.dictionaries(st.text(), st.text(), min_size=1), max_size=5))
def test_what_is_added_is_read(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("records") / "r.jsonl"
    for line in lines:
        append(path, line)
    assert list(read(path)) == lines


def test_the_last_label_of_a_person_counts(tmp_path):
    assert list(labels(tmp_path)) == []
    bob = replace(LABEL, by="bob")
    for one in (LABEL, bob, replace(LABEL, agrees=False, note="no"), replace(LABEL, subject="datasets/d::t::teacher")):
        add_label(tmp_path, one)
    assert [(one.by, one.agrees, one.subject) for one in labels(tmp_path)] == [
        ("ada", False, ""),
        ("bob", True, ""),
        ("ada", True, "datasets/d::t::teacher"),
    ]
    assert os.listdir(tmp_path) == [LABELS]


def test_labels_of_findings_are_counted_by_model_and_rubric():
    found = [
        LABEL,
        replace(LABEL, by="bob", agrees=False),
        replace(LABEL, criterion="loud", agrees=False),
        replace(LABEL, outcome="pass", finding=False, agrees=False),
        replace(LABEL, model="other"),
        replace(LABEL, rubric="other"),
    ]
    assert agreement(found, "org/judge", RUBRIC.digest) == {"right": (1, 1), "loud": (0, 1)}


@pytest.mark.parametrize("change", [{"agrees": "yes"}, {"id": None}, {"by": 3}])
def test_labels_of_another_form_are_left_out(tmp_path, change):
    append(tmp_path / LABELS, {**asdict(LABEL), **change})
    append(tmp_path / LABELS, {**asdict(LABEL), "later": "fields"})
    assert list(labels(tmp_path)) == [LABEL]
