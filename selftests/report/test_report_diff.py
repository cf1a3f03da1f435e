"""What changed between two runs, and why."""

import json

import pytest

from pytest_otval.__main__ import main
from pytest_otval.report.diff import MOST_SHOWN, change_lines, compare
from pytest_otval.report.rate_diff import rate_changes, rate_lines
from pytest_otval.report.results import row_of
from selftests.report.ledgers import IMAGE, attempts, line, make_run


def rows(*lines):
    return [row_of(one.as_dict()) for one in lines]


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        ({}, {"task_digest": "sha256:new"}, "task"),
        ({"image": IMAGE}, {"image": {**IMAGE, "key": "new"}}, "image"),
        ({"image": IMAGE}, {"image": {**IMAGE, "content": "new"}}, "image"),
        ({"image": IMAGE}, {"image": {**IMAGE, "key": "new"}, "task_digest": "sha256:new"}, "task"),
        ({"image": IMAGE}, {"image": None}, "nothing"),
        ({}, {"settings_digest": "new"}, "settings"),
        ({}, {"flavour": "setuid"}, "settings"),
        ({}, {"task_digest": ""}, "nothing"),
        ({}, {}, "nothing"),
    ],
)
def test_the_cause_of_a_changed_verdict(before, after, cause):
    changes = compare(rows(line(**before)), rows(line(reason="wrong-reward", **after)))
    assert [(change.id, change.cause) for change in changes] == [(line().id, cause)]


def test_equal_verdicts_are_no_change():
    old, new = rows(line(reason="no-reward")), rows(line(reason="wrong-reward", task_digest="sha256:new"))
    assert compare(old, new) == []
    assert [text.text for text in change_lines([])] == ["no verdict changed"]


def test_new_and_gone_and_their_order():
    old = rows(line("a"), line("b"), line("c"))
    new = rows(line("b", reason="wrong-reward"), line("c", reason="killed", task_digest="x"), line("d"))
    changes = compare(old, new)
    assert [(change.cause, change.id.split("/")[3]) for change in changes] == [
        ("task", "c"),
        ("nothing", "b"),
        ("new", "d"),
        ("gone", "a"),
    ]
    shown = [text.text for text in change_lines(changes)]
    assert "nothing changed: flaky, or the machine: 1" in shown
    assert "  datasets/demo/tasks/b/task.toml::oracle: pass -> fail wrong-reward" in shown
    assert changes[-1].as_dict()["after"] is None


def test_a_long_list_is_cut():
    new = rows(*(line(f"t{number}") for number in range(MOST_SHOWN + 5)))
    shown = [text.text for text in change_lines(compare([], new))]
    assert shown[0] == f"new: {MOST_SHOWN + 5}"
    assert shown[-1] == "  and 5 more; --json lists all"


# --- attempts of models ---


def test_rates_before_and_after():
    before = rows(*attempts("----", "a"), *attempts("+-", "b"), *attempts("++", "gone"))
    after = rows(*attempts("++++", "a"), *attempts("+-x", "b", task_digest="new"), *attempts("--", "new"))
    assert [text.text for text in rate_lines(rate_changes(before, after))] == [
        "attempts of m at demo: 2 tasks of both runs, without invalid attempts",
        "     k   tasks   before    after  change of pass@k",
        "     1       2    0.250    0.750  +0.500 (+0.000 to +1.000)",
        "     2       2    0.500    1.000  +0.500 (+0.000 to +1.000)",
        "     3       1    0.000    1.000  +1.000",
        "     4       1    0.000    1.000  +1.000",
        "        2 clusters are few: the interval is too narrow",
        "        1 task of these with other files than before",
        "        1 task changed by an interval without 0 (by chance about 1 of 20 of 2):",
        "          a: +1.000 (+0.307 to +1.000)",
    ]


def test_rates_of_models_that_one_run_has_are_not_compared():
    assert rate_changes(rows(*attempts("+", model="m"), line()), rows(*attempts("+", model="n"), line())) == []
    (change,) = rate_changes(rows(*attempts("x")), rows(*attempts("+")))
    assert [text.text for text in rate_lines([change])] == [
        "attempts of m at demo: 0 tasks of both runs, without invalid attempts"
    ]


def test_diff_tells_rates_as_lines_and_as_json(tmp_path, capsys):
    before, after = make_run(tmp_path / "before", *attempts("--")), make_run(tmp_path / "after", *attempts("++"))
    assert main(["report", "diff", str(before), str(after)]) == 0
    shown = capsys.readouterr().out
    assert (
        "     1       1    0.000    1.000  +1.000 (+0.070 to +1.000)\n     2       1    0.000    1.000  +1.000\n"
        in shown
    )
    assert main(["report", "diff", str(before), str(after), "--json", "-"]) == 0
    (rate,) = json.loads(capsys.readouterr().out)["rates"]
    assert (rate["dataset"], rate["model"], rate["tasks"], rate["other_files"]) == ("demo", "m", 1, 0)
    first = rate["pass_at"][0]
    assert (first["k"], first["before"], first["after"], first["change"]["value"]) == (1, 0.0, 1.0, 1.0)
