"""What changed between two runs, and why."""

import pytest

from pytest_otval.report.diff import MOST_SHOWN, change_lines, compare
from pytest_otval.report.results import row_of
from selftests.report.ledgers import IMAGE, line


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
