"""``judge label``: what people say of findings of a run, which may be somebody else's."""

import getpass

import pytest

from pytest_otval.__main__ import main
from pytest_otval.judge.labels import labels
from pytest_otval.ledger import Ledger
from pytest_otval.workspace import Workspace
from selftests.report.reviewed import fail, judged, judgement, review

TASK = "datasets/demo/tasks/a/task.toml::judge_task"
TRACE = "datasets/demo/tasks/a/task.toml::judge_trace"
ATTEMPTS = [f"datasets/demo/tasks/a/task.toml::teacher[m-{number}]" for number in range(2)]


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("OT_WORKSPACE", str(tmp_path))
    return Workspace(tmp_path)


@pytest.fixture
def run(tmp_path):
    ledger = Ledger(tmp_path / "run", "main")
    ledger.write(judged(review(judgement("weak_test")), time="2026-01-01"))
    ledger.write(judged(review(fail("weak_test"), judgement("ambiguous", "fail", "refuted")), time="2026-01-02"))
    attempts = [review(fail("looping"), kind="trace", subject=subject) for subject in ATTEMPTS]
    ledger.write(judged(*attempts, stage="judge_trace"))
    ledger.write(judged(task="none"))
    ledger.close()
    with ledger.path.open("a") as file:
        file.write('{"v": 1, "kind": "result", "id": "x", "task_digest": "d", "judge": [{}, 3]}\n[1]\n{"v": 1}\n')
    return tmp_path / "run"


def label(capsys, *words):
    """Return exit status, output and errors."""
    status = main(["judge", "label", *map(str, words)])
    told = capsys.readouterr()
    return status, told.out, told.err


def test_a_label_says_all_that_is_needed_to_count_it(capsys, workspace, run):
    words = [run, TASK, "weak_test", "agree", "--note", "any file will do", "--by", "ada"]
    status, told, _ = label(capsys, *words)
    assert (status, told) == (0, "ada agrees with j: weak_test fail, stands\n")
    (one,) = labels(workspace.judges)
    assert (one.id, one.subject, one.task_digest, one.criterion) == (TASK, "", "sha256:a", "weak_test")
    assert (one.model, one.rubric, one.outcome, one.finding, one.agrees) == ("j", "r" * 16, "fail", True, True)
    assert (one.by, one.note, one.run) == ("ada", "any file will do", str(run))


def test_what_was_refuted_is_no_finding(capsys, workspace, run):
    assert label(capsys, run, TASK, "ambiguous", "disagree")[1].endswith("disagrees with j: ambiguous fail, refuted\n")
    (one,) = labels(workspace.judges)
    assert (one.finding, one.agrees, one.by) == (False, False, getpass.getuser())


def test_of_several_attempts_one_is_named(capsys, workspace, run):
    status, _, said = label(capsys, run, TRACE, "looping", "agree")
    assert status == 4
    assert said == f"error: 2 attempts were reviewed: name one of them: {', '.join(ATTEMPTS)}\n"
    assert label(capsys, run, ATTEMPTS[1], "looping", "agree")[0] == 0
    (one,) = labels(workspace.judges)
    assert (one.id, one.subject) == (TRACE, ATTEMPTS[1])


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["{run}/none", TASK, "weak_test"], "{run}/none is no run folder: it has no ledger"),
        (["{run}", "x", "weak_test"], "{run} has no review of x: give the id of an item of -m judge"),
        (["{run}", "\x1b[2J", "y"], "{run} has no review of \\x1b[2J: give the id of an item of -m judge"),
        (["{run}", TASK, "strong_test"], "its rubric has no criterion strong_test: it has weak_test, ambiguous"),
    ],
)
def test_wrong_usage_is_one_line(capsys, workspace, run, words, error):
    status, _, said = label(capsys, *(word.format(run=run) for word in words), "agree")
    assert (status, said) == (4, f"error: {error.format(run=run)}\n")
    assert list(labels(workspace.judges)) == []


def test_a_ledger_of_another_form_ends_in_a_line(capsys, workspace, tmp_path):
    (tmp_path / "run" / "ledger").mkdir(parents=True)
    reviews = ['{"kind": "trace"}', '{"judgements": [{"opinion": {"evidence": [3]}}], "spending": {}, "left_out": []}']
    line = '{"v": 1, "kind": "result", "id": "x", "task_digest": "d", "judge": [%s]}\n'
    (tmp_path / "run" / "ledger" / "main.jsonl").write_text(line % ", ".join(reviews))
    assert label(capsys, tmp_path / "run", "x", "c", "agree")[0] == 4
