"""What results add up to."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.report.results import row_of
from pytest_otval.report.summary import MOST_GROUPS, normalised, summarise, summary_lines
from selftests.report.ledgers import IMAGE, attempts, line


def lines_of(*lines):
    summary = summarise(row_of(one.as_dict()) for one in lines)
    return [text.text for text in summary_lines(summary, Path("/run/ledger"))]


def test_a_row_for_each_stage_adds_up():
    reasons = ["expected", "expected", "wrong-reward", "killed", "image-failed", "compose", "flaky"]
    given = [line(f"t{number}", reason=reason, seconds={"total": number}) for number, reason in enumerate(reasons)]
    given += [line("u", reason="wrong-reward", known_bad="why", seconds={"total": 99}), line("u", "static")]
    shown = lines_of(*given)
    assert shown[0].split() == [
        "stage", "pass", "fail", "error", "blocked", "n/a", "flaky", "known", "bad", "median", "s",
    ]  # fmt: skip
    assert shown[1].split() == ["static", "1", "0", "0", "0", "0", "0", "0", "1.00"]
    assert shown[2].split() == ["oracle", "2", "1", "1", "1", "1", "1", "1", "3.50"]
    assert shown[-1] == "ledger: /run/ledger"
    assert "known bad, as dataset.toml says: 1: u" in shown


def test_unsolved_attempts_have_a_column_where_there_are_attempts():
    shown = lines_of(line(), *attempts("+--x!"))
    assert shown[0].split()[:5] == ["stage", "pass", "unsolved", "fail", "error"]
    assert shown[1].split()[:5] == ["oracle", "1", "0", "0", "0"]
    assert shown[2].split()[:5] == ["teacher", "1", "2", "1", "1"]


def test_failures_are_grouped_by_their_last_line():
    logs = [f"at {n}\nFileNotFoundError: /tmp/pytest-{n}/x{n} at 0x7f{n:04x}\n" for n in range(5)]
    given = [line(f"t{n}", reason="no-reward", log=log) for n, log in enumerate(logs)]
    given += [line("u", reason="wrong-reward", headline="oracle scored 0.5")]
    shown = lines_of(*given)
    at = shown.index("to look at, by stage, class and last line:")
    assert shown[at + 1 : at + 5] == [
        "     5 x oracle: no-reward: FileNotFoundError: <path> at <hex>",
        "         t0, t1, t2, ...",
        "     1 x oracle: wrong-reward: oracle scored 0.5",
        "         u",
    ]


def test_at_most_so_many_groups_the_most_frequent_first():
    kinds = [(f"kind {letter}", count) for count, letter in enumerate("abcdefghijklmnopqrstuvwxyz", start=1)]
    given = [line(f"t-{kind[-1]}-{n}", reason="no-reward", log=kind) for kind, count in kinds for n in range(count)]
    shown = [text for text in lines_of(*given) if re.match(r" *\d+ x ", text)]
    assert len(shown) == MOST_GROUPS + 1
    assert shown[0] == "    26 x oracle: no-reward: kind z"
    assert shown[-1] == "    21 x of 6 more kinds"


def test_a_known_bad_task_that_passes_is_to_look_at():
    shown = lines_of(line(known_bad="known bad until 2030-01-01 (me): no mirror"))
    assert "     1 x oracle: expected: passes, but is known bad until 2030-01-01 (me): no mirror" in shown


def test_what_was_not_asked_stands_by_itself():
    shown = lines_of(line(reason="compose", headline="environment/compose.yaml needs docker compose"))
    at = shown.index("not applicable:")
    assert shown[at + 1] == "     1 x oracle: compose: environment/compose.yaml needs docker compose"
    assert not any(text.startswith("to look at") for text in shown)


def test_where_ours_is_stricter_and_where_bases_are_stood_in_for():
    shown = lines_of(
        line("a", reason="reward-conflict", stricter="reward-conflict"),
        line("b", image={**IMAGE, "base": "bootstrap:bookworm@1"}),
        line("c", image=IMAGE),
    )
    assert "fails only here, not by Harbor's rules: 1: a (oracle: reward-conflict)" in shown
    assert "base images stood in for by bootstrap:bookworm@1" in shown


def test_no_text_of_a_task_steers_the_terminal():
    evil = "\x1b]0;x\x07\u202e\r\n"
    id = f"datasets/demo/tasks/{evil}/task.toml::oracle"
    for text in lines_of(line(id=id, reason="no-reward", log=evil, headline=evil, stricter=evil, known_bad="")):
        assert text.isprintable()


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ("took 1.25 s", "took 12 s", "took <n> s"),
        ("at 0x7ffe12", "at 0xAB", "at <hex>"),
        ("commit 1a2b3c4d5e", "commit deadbeef00", "commit <hex>"),
        ("no /tmp/a/b.py", "no ~/x", "no <path>"),
        ("no ./a/b", "no ../c", "no <path>"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-0000-0000-0000-000000000000", "id <uuid>"),
        ("2026-01-02T03:04:05.678Z x", "2025-12-31 23:59:59 x", "<time> x"),
        ("12:34:56 x", "1:02 x", "<time> x"),
        ("1 failed, 2 passed in 0.12s", "3 failed, 0 passed in 14.00s", "<n> failed, <n> passed in <n>s"),
    ],
)
def test_what_varies_is_replaced(first, second, both):
    assert normalised(first) == normalised(second) == both


def test_words_stay():
    for text in ("and/or", "feedback deface", "reward.txt or reward.json", "E: no such file"):
        assert normalised(text) == text


@given(st.text(st.sampled_from("0123456789abcdefx/.:-~ TZ+"), max_size=120))
def test_numbers_never_stay(text):
    assert not re.search(r"[0-9]", normalised(text))
