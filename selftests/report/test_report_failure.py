"""What a person reads of one failure."""

import shlex
from pathlib import Path

import pytest

from pytest_otval.report.failure import LOG_LINES, evidence_shown, failure_text
from selftests.report.ledgers import line


def text_of(run=Path("/run"), **fields):
    return failure_text(line(**fields).as_dict(), run)


def test_all_that_is_needed(tmp_path):
    (tmp_path / "evidence/demo/a/oracle").mkdir(parents=True)
    shown = text_of(
        tmp_path,
        reason="no-reward",
        headline="the verifier ended without a reward",
        log="one\ntwo\n",
        evidence="evidence/demo/a/oracle",
        reproduce="apptainer exec -C image.sqfs sh",
    )
    place = evidence_shown(tmp_path, {"evidence": "evidence/demo/a/oracle"})
    assert place.endswith("evidence/demo/a/oracle")
    assert shown.splitlines() == [
        "no-reward: the verifier ended without a reward",
        "",
        "  | one",
        "  | two",
        "",
        f"evidence: {place}",
        'reproduce: pytest "datasets/demo/tasks/a/task.toml::oracle" --otval-keep',
        "reproduce: apptainer exec -C image.sqfs sh",
    ]


def test_a_dataset_that_is_not_found_by_its_name_is_given_by_its_path():
    shown = text_of(reason="no-reward", argument="/elsewhere/set/tasks/a/task.toml::oracle")
    assert 'reproduce: pytest "/elsewhere/set/tasks/a/task.toml::oracle" --otval-keep' in shown.splitlines()


def test_the_end_of_a_long_log():
    shown = text_of(reason="no-reward", log="\n".join(map(str, range(1000))))
    assert "  | 999" in shown.splitlines()
    assert sum(entry.startswith("  | ") for entry in shown.splitlines()) == LOG_LINES


@pytest.mark.parametrize("place", ["not kept: No space left on device", "../../etc", "/etc/passwd"])
def test_a_place_that_is_none_is_said(place, tmp_path):
    shown = text_of(tmp_path, reason="no-reward", evidence=place)
    assert [entry for entry in shown.splitlines() if entry.startswith("evidence: ")]


def test_nothing_steers_the_terminal_or_the_shell():
    evil = "\x1b[2J\u202e$(touch x)`y`\"'\n\r"
    shown = text_of(id=evil, reason="no-reward", headline=evil, log=evil, reproduce=evil)
    assert all(entry.isprintable() for entry in shown.splitlines())
    (command, _) = [
        entry.removeprefix("reproduce: ") for entry in shown.splitlines() if entry.startswith("reproduce: ")
    ]
    assert shlex.split(command)[1] == "\\x1b[2J\\u202e$(touch x)`y`\"'"
    assert command.startswith("pytest '")
