"""What became of items between two runs, and how it is told."""

from itertools import count

import pytest

from pytest_otval.sources.effect import confirmed, effects, read_answers
from pytest_otval.sources.effect_tables import attack_table, joint, markdown, table
from selftests.report.ledgers import line, make_run

CASES = [
    ("fixed", "wrong-reward", "expected"),
    ("regressed", "expected", "no-reward"),
    ("still broken", "wrong-reward", "no-reward"),
    ("unchanged", "expected", "expected"),
    ("unchanged", "no-solution", "no-solution"),
    ("no answer", "expected", "no-start"),
    ("no answer", "no-start", "expected"),
    ("fixed", "image-failed", "expected"),
    ("regressed", "expected", "no-solution"),
]
PATCHES = {f"t{number}": ("first",) if number < 4 else ("first", "second") for number in range(len(CASES))}


@pytest.fixture
def compare(tmp_path):
    """Compare lines of two runs: ``compare([BEFORE...], [AFTER...])``."""

    runs = (tmp_path / str(number) for number in count())

    def run(before, after, patches=None):
        answers = [read_answers(make_run(next(runs), *lines)) for lines in (before, after)]
        return effects(*answers, patches or {task: ("p",) for task, _ in answers[1]})

    return run


@pytest.fixture
def cases(compare):
    def lines(at):
        return [line(f"t{number}", "oracle", case[at]) for number, case in enumerate(CASES)]

    return compare(lines(1), lines(2), PATCHES)


def attacked(reason="attack-paid", task="a", **cells):
    return line(task, "adversary", reason, attacks={name.replace("_", "-"): cell for name, cell in cells.items()})


def finding(check, severity="error", **fields):
    return {
        "check": check,
        "severity": severity,
        "path": "tests/test.sh",
        "line": 3,
        "message": "x",
        "fix": "",
        **fields,
    }


def repeated(passed, of, low, high, stage="oracle"):
    reason = "expected" if passed == of else "flaky" if passed else "no-reward"
    attempts = {"passed": passed, "count": of, "low": low, "high": high}
    return line("a", stage, reason, attempts=attempts)


STABLE, NEVER = repeated(3, 3, 0.42, 1.0), repeated(0, 3, 0.0, 0.54)
FLAKY, RARE = repeated(2, 3, 0.18, 0.96), repeated(1, 10, 0.01, 0.38)


def test_what_became_of_each_item(cases):
    assert [one.became for one in cases] == [case[0] for case in CASES]
    assert (str(cases[1].before), str(cases[1].after)) == ("pass", "fail no-reward")


def test_an_item_that_only_one_run_has(compare):
    assert [one.became for one in compare([line("b")], [line("a")])] == ["no answer"]


@pytest.mark.parametrize(
    ("before", "after", "became", "new", "gone"),
    [
        (attacked(x="paid"), attacked(x="paid"), "still broken", [], []),
        (attacked(x="paid", y="paid"), attacked(x="paid", y="stopped"), "improved", [], ["paid y"]),
        (attacked(x="paid", y="stopped"), attacked(x="stopped", y="paid"), "regressed", ["paid y"], ["paid x"]),
        (attacked("expected", x="stopped"), attacked(x="paid"), "regressed", ["paid x"], []),
        # What no container can stop fails nothing, and is worse all the same.
        (attacked("expected", x="stopped"), attacked("expected", x="paid"), "regressed", ["paid x"], []),
        (attacked("expected", x="paid"), attacked("expected", x="accepted"), "improved", [], ["paid x"]),
        (attacked(x="paid"), attacked("expected", x="stopped"), "fixed", [], ["paid x"]),
        # It had no need that the attack has, or nothing was tried, since the solution was not paid.
        (attacked("no-attack", x="not-applied"), attacked(x="paid"), "regressed", ["paid x"], []),
        (attacked("no-reward", x="not-applied"), attacked(x="paid"), "still broken", ["paid x"], []),
    ],
)
def test_attack_by_attack(compare, before, after, became, new, gone):
    (one,) = compare([before], [after])
    assert (one.became, one.new, one.gone) == (became, new, gone)


@pytest.mark.parametrize(
    ("before", "after", "became"),
    [
        ([finding("x")], [finding("x", line=9)], "still broken"),
        ([finding("x")], [finding("x"), finding("y")], "regressed"),
        ([finding("x")], [finding("x"), finding("y", "warning")], "still broken"),
        ([finding("x")], [finding("x"), finding("y", allowed="because")], "still broken"),
        ([finding("x"), finding("y")], [finding("x")], "improved"),
    ],
)
def test_finding_by_finding(compare, before, after, became):
    lines = [[line("a", "static", "static-findings", checks=checks)] for checks in (before, after)]
    assert [one.became for one in compare(*lines)] == [became]


def test_to_pay_for_nothing_is_worse_than_no_reward(compare):
    (one,) = compare([line("a", "noop", "no-reward")], [line("a", "noop", "wrong-reward")])
    assert (one.became, one.new) == ("regressed", ["paid for doing nothing"])
    (one,) = compare([line("a", "noop", "wrong-reward")], [line("a", "noop", "wrong-reward")])
    assert one.became == "still broken"


@pytest.mark.parametrize(
    ("before", "after", "became"),
    [
        (STABLE, NEVER, "regressed"),
        (STABLE, FLAKY, "flaky"),
        (FLAKY, NEVER, "flaky"),
        (FLAKY, STABLE, "flaky"),
        (STABLE, RARE, "regressed"),
        (RARE, STABLE, "improved"),
        (FLAKY, line("a", reason="image-failed"), "regressed"),
        (line("a", reason="image-failed"), FLAKY, "improved"),
        # One attempt says little.
        (line("a"), RARE, "flaky"),
    ],
)
def test_answers_that_differ_are_worse_only_where_the_rates_are_told_apart(compare, before, after, became):
    assert [one.became for one in compare([before], [after])] == [became]


@pytest.mark.parametrize(
    ("first", "again", "became"),
    [
        ((line("a"), line("a", reason="no-reward")), (STABLE, NEVER), "regressed"),
        ((line("a"), line("a", reason="no-reward")), (FLAKY, NEVER), "flaky"),
        ((line("a"), line("a", reason="no-reward")), (STABLE, STABLE), "flaky"),
        ((line("a"), line("a", reason="no-reward")), (STABLE, line("a", reason="no-start")), "no answer"),
        ((attacked("expected", x="stopped"), attacked(x="paid")),) * 2 + ("regressed",),
        (
            (attacked("expected", x="stopped"), attacked(x="paid")),
            (attacked("expected", x="stopped"), attacked("expected", x="stopped")),
            "flaky",
        ),
        # It was paid before, too, once.
        (
            (attacked("expected", x="stopped"), attacked(x="paid")),
            (attacked(x="paid"), attacked(x="paid")),
            "flaky",
        ),
    ],
)
def test_asked_again_only_what_holds_is_a_regression(compare, first, again, became):
    (one,) = compare([first[0]], [first[1]])
    assert one.became == "regressed"
    (second,) = compare([again[0]], [again[1]])
    assert confirmed(one, second.before, second.after).became == became
    assert confirmed(one, None, second.after).became == "no answer"


def test_the_table_counts_by_patch_and_stage(cases):
    rows = table(cases)
    assert rows == [
        ("patch", "stage", "fixed", "improved", "regressed", "flaky", "still broken", "unchanged", "no answer"),
        ("first", "oracle", "1", "0", "1", "0", "1", "1", "0"),
        ("first + second", "oracle", "1", "0", "1", "0", "0", "1", "2"),
    ]
    assert joint(cases) and not joint(cases[:4])
    assert list(markdown(rows))[1:3] == [
        "|---|---|---|---|---|---|---|---|---|",
        "| first | oracle | 1 | 0 | 1 | 0 | 1 | 1 | 0 |",
    ]


def test_attacks_are_counted_before_and_now(compare):
    found = compare(
        [attacked(x="paid", y="paid"), attacked(task="b", x="paid"), line("a", "noop", "wrong-reward")],
        [attacked(x="stopped", y="paid"), attacked(task="b", x="paid"), line("a", "noop", "wrong-reward")],
    )
    assert attack_table(found) == [
        ("patch", "attack", "paid before", "paid now"),
        ("p", "x", "2", "1"),
        ("p", "y", "1", "1"),
    ]
    assert attack_table(compare([line("a")], [line("a")])) == []
