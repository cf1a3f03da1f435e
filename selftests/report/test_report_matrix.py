"""Attacks against isolation levels."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.__main__ import main
from pytest_otval.glue.lines import for_reports
from pytest_otval.report.matrix import CELLS, matrix_of, short_lines, table_lines, told
from pytest_otval.report.properties import properties
from pytest_otval.report.results import read_results, row_of
from selftests.report.ledgers import line, make_run


def attacked(task="a", level="fresh", **cells):
    cells = {id.replace("_", "-"): cell for id, cell in cells.items()}
    reason = "attack-paid" if "paid" in cells.values() else "expected"
    return line(task, "adversary", reason, isolation=level, attacks=cells)


def rows(*lines):
    return [row_of(one.as_dict()) for one in lines]


def test_a_line_for_each_level():
    given = [
        attacked("a", pth="paid", curl="paid", uvx="not-applied"),
        attacked("b", pth="paid", curl="stopped", uvx="accepted"),
        attacked("a", "none", pth="paid", curl="paid", uvx="paid"),
        line("c", "oracle"),
    ]
    assert list(short_lines(matrix_of(rows(*given)))) == [
        ("attacks at none: 3 paid: paid pth, curl, uvx", True),
        ("attacks at fresh: 3 paid, 1 accepted, 1 stopped, 1 not-applied: paid pth x 2, curl", True),
    ]
    assert list(short_lines(matrix_of(rows(attacked("a", pth="stopped"))))) == [("attacks at fresh: 1 stopped", False)]
    assert list(short_lines(matrix_of(rows(line("c", "oracle"))))) == []


def test_the_table_has_a_column_for_each_level():
    given = [
        attacked("a", pth="stopped", curl="paid"),
        attacked("a", "none", pth="paid", curl="paid"),
        attacked("b", "none", pth="paid", curl="not-applied"),
        attacked("a", "masked", pth="stopped"),
    ]
    assert list(table_lines(matrix_of(rows(*given)))) == [
        "| attack | none | fresh | masked |",
        "|---|---|---|---|",
        "| pth | 2 paid | stopped | stopped |",
        "| curl | 1 paid, 1 not-applied | paid |  |",
        "| paid of those that ran | 3 of 3 | 1 of 2 | 0 of 1 |",
    ]


def test_the_latest_answer_of_a_task_counts():
    old = {"time": "2026-01-01T00:00:00.000+00:00"}
    new = {"time": "2026-01-02T00:00:00.000+00:00"}
    lines = [
        line("a", "adversary", isolation="fresh", attacks={"pth": cell}, **when)
        for cell, when in (("stopped", new), ("paid", old))
    ]
    assert matrix_of(rows(*lines)).as_dict()["attacks"] == {"pth": {"fresh": {"stopped": 1}}}


@given(st.lists(st.tuples(st.text("ab", max_size=1), st.sampled_from(["none", "fresh"]), st.sampled_from(CELLS))))
def test_each_task_is_counted_once_at_each_level(answers):
    given = rows(
        *(line(f"t{task}", "adversary", isolation=level, attacks={"x": cell}) for task, level, cell in answers)
    )
    matrix = matrix_of(given)
    assert sum(matrix.of_level("none").values()) == len({task for task, level, _ in answers if level == "none"})
    assert told({}) == ""


def test_what_pytest_carries_is_what_the_ledger_has():
    one = attacked(pth="paid", curl="stopped", uvx="stopped")
    carried = row_of(json.loads(json.dumps(for_reports(one))))
    assert (carried.attacks, carried.isolation) == (row_of(one.as_dict()).attacks, "fresh")
    found = dict(properties(carried))
    assert (found["isolation"], found["attacks"], found["attacks.paid"]) == ("fresh", "1 paid, 2 stopped", "pth")
    assert not {"isolation", "attacks"} & dict(properties(row_of(line(isolation="fresh").as_dict()))).keys()


def test_names_that_no_version_of_ours_wrote():
    evil = "\x1b[2J|<b>\u202e"
    matrix = matrix_of(rows(line("a", "adversary", isolation=evil, attacks={evil: evil})))
    shown = "".join(
        (
            *table_lines(matrix),
            *(text for text, _ in short_lines(matrix)),
            json.dumps(matrix.as_dict(), ensure_ascii=False),
        )
    )
    assert not set("\x1b\u202e") & set(shown)
    assert matrix.levels == [evil]


def test_the_command(tmp_path, capsys):
    for level in ("none", "fresh"):
        make_run(tmp_path / level, attacked("a", level, pth="paid" if level == "none" else "stopped"), line("b"))
    runs = [str(tmp_path / "fresh"), str(tmp_path / "none")]
    assert main(["report", "--attacks", *runs]) == 0
    assert "| pth | paid | stopped |" in capsys.readouterr().out
    assert main(["report", "--attacks", *runs, "--json", "-", "--select", "attacks.paid > 0"]) == 4
    assert "no result" in capsys.readouterr().err, "of a run nothing is selected"
    assert main(["report", "--attacks", runs[1], "--json", "-", "--select", "attacks.paid > 0"]) == 0
    assert json.loads(capsys.readouterr().out) == {"levels": ["none"], "attacks": {"pth": {"none": {"paid": 1}}}}
    assert main(["report", runs[0]]) == 0
    assert "attacks at fresh: 1 stopped\n" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--html", "x"], ["--select", "stage == 'oracle'"]])
def test_wrong_usage(tmp_path, capsys, words):
    make_run(tmp_path / "run", attacked(pth="paid"), line("b"))
    assert main(["report", "--attacks", str(tmp_path / "run"), *words]) == 4
    assert capsys.readouterr().err.count("\n") == 1


def test_rows_of_equal_answers_share_them(tmp_path):
    results = read_results(make_run(tmp_path / "run", attacked("a", pth="paid"), attacked("b", pth="paid")))
    assert results.rows[0].attacks is results.rows[1].attacks
