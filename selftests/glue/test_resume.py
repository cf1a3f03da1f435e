"""Runs that go on, and answers that are taken from earlier ones."""

import json
import os
import signal
import time

import pytest

from pytest_otval.ledger import read_ledger
from selftests.glue.conftest import finish, ids

pytest_plugins = ["pytester"]


def resume(project, run, *args, process=False):
    """Run pytest into no folder of its own."""
    if process:
        return finish(start(project, f"--otval-resume={run}", *args))
    result = project.pytester.runpytest_inprocess("-p", "otval_stub", f"--otval-resume={run}", *args)
    from selftests.glue.conftest import Outcome

    return Outcome(int(result.ret), result.outlines, result.errlines)


def start(project, *args):
    project._out = list
    try:
        return project.start(*args)
    finally:
        del project._out


def results(run):
    return [line for line in read_ledger(run) if line["kind"] == "result"]


def told(outcome):
    return [line for line in outcome.lines if line.startswith("not asked again")]


def mend(project, task, stage, answer="expected", dataset="demo"):
    (project.root / "datasets" / dataset / "tasks" / task / "wanted" / stage).write_text(answer)


def test_only_what_is_missing_is_asked(project):
    project.dataset(tasks={name: {} for name in "abc"})
    project.run("datasets/demo/tasks/a", "datasets/demo/tasks/b")
    run = project.runs[-1]
    before = results(run)
    outcome = resume(project, run, "datasets/demo/tasks")
    assert outcome.status == 0
    assert told(outcome) == ["not asked again: 8 answers of this run"]
    assert results(run)[: len(before)] == before
    assert sorted(line["id"] for line in results(run) if "dataset.toml" not in line["id"]) == sorted(ids(*"abc"))


def test_failures_are_told_again_and_errors_are_asked_again(project):
    project.dataset(tasks={"a": {"oracle": "wrong-reward it is 0.5", "noop": "no-start"}})
    assert project.run("datasets/demo", "-m", "oracle or noop").status == 1
    run = project.runs[-1]
    outcome = resume(project, run)
    assert outcome.status == 1
    assert told(outcome) == ["not asked again: 1 answers of this run"]
    assert any("wrong-reward: it is 0.5" in line for line in outcome.lines)
    assert [line["class"] for line in results(run)].count("no-start") == 2


def test_the_command_line_is_that_of_the_run(project):
    project.dataset()
    project.run("datasets/demo", "-m", "noop", "--otval-rules", "strict")
    run = project.runs[-1]
    outcome = resume(project, run, "-v")
    assert outcome.status == 0
    assert told(outcome) == ["not asked again: 2 answers of this run"]
    assert {line["id"] for line in results(run)} == set(ids("a", "b", stages=("noop",)))
    assert told(resume(project, run)) == told(outcome)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_with_workers_too(project, workers):
    project.dataset(tasks={name: {} for name in "abcd"})
    project.process("datasets/demo", "-n", workers, "--otval-limit", "2")
    run = project.runs[-1]
    outcome = resume(project, run, "datasets/demo", "-n", workers, process=True)
    assert outcome.status == 0, outcome.lines
    assert told(outcome) == ["not asked again: 8 answers of this run"]
    assert sorted(line["id"] for line in results(run) if "dataset.toml" not in line["id"]) == sorted(ids(*"abcd"))


def test_latest_is_a_run(project):
    project.dataset()
    project.run("datasets/demo", "-m", "noop")
    assert told(resume(project, "latest")) == ["not asked again: 2 answers of this run"]


def test_other_settings_and_other_files_are_asked_again(project):
    folder = project.dataset()
    project.run("datasets/demo", "-m", "noop")
    run = project.runs[-1]
    assert not told(resume(project, run, "datasets/demo", "-m", "noop", "--otval-rules", "strict"))
    (folder / "tasks" / "a" / "x").write_text("x")
    assert told(resume(project, run, "datasets/demo", "-m", "noop")) == ["not asked again: 1 answers of this run"]


def test_a_half_line_is_asked_again(project):
    project.dataset()
    project.run("datasets/demo", "-m", "noop")
    run = project.runs[-1]
    ledger = run / "ledger" / "main.jsonl"
    ledger.write_bytes(ledger.read_bytes()[:-10])
    outcome = resume(project, run)
    assert outcome.status == 0
    assert told(outcome) == ["not asked again: 1 answers of this run"]
    assert sorted(line["id"] for line in results(run)) == ids("a", "b", stages=("noop",))


def test_a_killed_run_goes_on(project, tmp_path):
    project.dataset(tasks={"a": {}, "b": {"noop": f"sleep {tmp_path}/began"}})
    process = project.start("datasets/demo", "-m", "noop")
    while not (tmp_path / "began").exists():
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    run = project.runs[-1]
    assert [line["id"] for line in results(run)] == ids("a", stages=("noop",))
    mend(project, "b", "noop")
    assert told(resume(project, run)) == ["not asked again: 1 answers of this run"]
    assert sorted(line["id"] for line in results(run)) == ids("a", "b", stages=("noop",))


def test_what_is_no_run_is_refused(project, tmp_path):
    project.dataset()
    refusal = resume(project, tmp_path / "nothing", "datasets/demo").refusal
    assert "it is no run folder" in refusal
    assert "it is no run folder" in resume(project, tmp_path / "nothing").refusal
    assert "leave --otval-out out" in project.run(f"--otval-resume={tmp_path}", "datasets/demo").refusal


def test_elsewhere_the_command_line_means_something_else(project, monkeypatch, tmp_path):
    project.dataset()
    project.run("datasets/demo", "-m", "noop")
    monkeypatch.chdir(tmp_path)
    assert f"it was begun in {project.root}: go there first" in resume(project, project.runs[-1]).refusal


def test_answers_of_earlier_runs_are_reused(project):
    folder = project.dataset(tasks={"a": {"oracle": "wrong-reward"}, "b": {}})
    project.run("datasets/demo", "-m", "oracle or noop")
    first = project.runs[-1]
    outcome = project.run("datasets/demo", "-m", "oracle or noop", "--otval-reuse")
    assert outcome.status == 1
    assert told(outcome) == ["not asked again: 4 answers of earlier runs"]
    assert {line["cached_from"] for line in project.ledger().values()} == {str(first)}
    assert {line["id"]: line["class"] for line in results(first)} == {
        id: line["class"] for id, line in project.ledger().items()
    }
    (folder / "tasks" / "b" / "x").write_text("x")
    outcome = project.run("datasets/demo", "-m", "oracle or noop", "--otval-reuse")
    assert told(outcome) == ["not asked again: 2 answers of earlier runs"]


def test_errors_na_and_other_settings_are_not_reused(project):
    project.dataset(tasks={"a": {"noop": "no-start"}, "b": {"noop": "no-gpu"}, "c": {"noop": "env-missing"}})
    project.run("datasets/demo", "-m", "noop")
    assert not told(project.run("datasets/demo", "-m", "noop", "--otval-reuse"))
    project.dataset("other", tasks={"a": {}})
    project.run("datasets/other", "-m", "noop")
    assert not told(project.run("datasets/other", "-m", "noop", "--otval-rules", "strict", "--otval-reuse"))
    assert not told(project.run("datasets/other", "-m", "noop"))
    assert told(project.run("datasets/other", "-m", "noop", "--otval-reuse"))


def test_a_task_that_asks_for_variables_of_the_host_is_asked(project):
    folder = project.dataset()
    (folder / "tasks" / "a" / "task.toml").write_text('[solution]\nenv = {KEY = "${KEY:-x}"}\n')
    project.run("datasets/demo", "-m", "noop")
    outcome = project.run("datasets/demo", "-m", "noop", "--otval-reuse")
    assert told(outcome) == ["not asked again: 1 answers of earlier runs"]


def test_other_thresholds_of_the_dataset_are_asked_again(project):
    folder = project.dataset()
    project.run("datasets/demo", "-m", "noop")
    (folder / "dataset.toml").write_text('[dataset]\nname = "org/demo"\n[otval]\nnoop_max = 0.5\n')
    assert not told(project.run("datasets/demo", "-m", "noop", "--otval-reuse"))


def test_an_answer_is_reused_through_a_run_that_reused_it(project):
    project.dataset()
    for _ in range(3):
        outcome = project.run("datasets/demo", "-m", "noop", "--otval-reuse")
    assert told(outcome) == ["not asked again: 2 answers of earlier runs"]
    assert json.dumps(project.ledger()).count("cached_from") == 2


def test_options_of_an_ini_file_do_not_replace_those_of_the_run(project):
    project.dataset()
    project.pytester.makeini("[pytest]\naddopts = -m noop\n")
    project.run("datasets/demo", "-m", "oracle")
    run = project.runs[-1]
    outcome = resume(project, run)
    assert outcome.status == 0
    assert {line["id"] for line in results(run)} == set(ids("a", "b", stages=("oracle",)))


def test_what_hangs_on_the_host_is_asked_again(project):
    project.dataset(tasks={"a": {"noop": "env-missing"}, "b": {"noop": "no-gpu"}, "c": {}})
    project.run("datasets/demo", "-m", "noop")
    run = project.runs[-1]
    assert told(resume(project, run)) == ["not asked again: 1 answers of this run"]


def test_attempts_under_other_settings_of_the_dataset_do_not_count(project):
    folder = project.dataset(tasks={"a": {"noop": "expected|expected"}})
    words = ["datasets/demo", "-m", "noop", "--otval-repeat", "2"]
    assert project.process(*words).status == 0
    run = project.runs[-1]
    trials = [line for line in read_ledger(run) if line["kind"] == "trial"]
    assert told(resume(project, run, process=True)) == ["not asked again: 1 answers of this run"]
    (folder / "dataset.toml").write_text('[dataset]\nname = "org/demo"\n[otval]\nnoop_max = 0.5\n')
    assert not told(resume(project, run, *words, process=True))
    assert len([line for line in read_ledger(run) if line["kind"] == "trial"]) == 2 * len(trials)
