"""Reviews by a model: which items there are, and what is refused before any begins."""

import json

import pytest

from pytest_otval.core import node_id
from pytest_otval.glue.units import make_units
from pytest_otval.ledger import read_ledger

pytest_plugins = ["pytester"]

URL = "--otval-base-url=http://127.0.0.1:9/v1"
JUDGE = (URL, "--otval-judge", "org/judge")


def items(*tasks, stages=("judge_task", "judge_trace")):
    return [node_id("demo", task, stage) for task in tasks for stage in stages]


@pytest.mark.parametrize(
    ("marks", "stages"),
    [
        ("judge", ("judge_task", "judge_trace")),
        ("judge_task", ("judge_task",)),
        ("judge_trace", ("judge_trace",)),
        ("judge and not judge_trace", ("judge_task",)),
        ("noop or judge_task", ("noop", "judge_task")),
        ("judge and noop", ()),
    ],
)
def test_one_mark_for_both_and_one_for_each(project, marks, stages):
    project.dataset()
    assert project.collect("datasets/demo", *JUDGE, "-m", marks) == items("a", "b", stages=stages)


def test_only_where_a_judge_is_named(project):
    project.dataset()
    assert not [id for id in project.collect("datasets/demo", *JUDGE) if "judge" in id]
    assert "--otval-judge MODEL" in project.run("datasets/demo", "-m", "judge").refusal
    assert "--otval-judge MODEL" in project.run("datasets/demo", "-m", "noop or judge_trace").refusal
    assert project.run("datasets/demo", "-m", "noop").status == 0


def test_marks_are_told(project):
    told = project.run("--markers").lines
    assert [line.split(":")[0] for line in told if line.startswith("@pytest.mark.judge")] == [
        *("@pytest.mark.judge_task", "@pytest.mark.judge_trace", "@pytest.mark.judge")
    ]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_answer_is_told_and_written(project, workers):
    project.dataset(tasks={"a": {"judge_task": "judged-faulty phantom_test"}, "b": {"judge_trace": "no-attempts"}})
    outcome = project.process("datasets/demo", *JUDGE, "-m", "judge", "-n", workers)
    assert (outcome.status, outcome.counts) == (1, {"failed": 1, "passed": 2, "n/a": 1})
    classes = [project.ledger()[id]["class"] for id in items("a", "b")]
    assert classes == ["judged-faulty", "expected", "expected", "no-attempts"]


def test_reviews_run_after_the_attempts(project):
    project.dataset(tasks={"a": {}})
    names = project.collect("datasets/demo", *JUDGE, "-m", "judge or teacher", "--otval-teacher=m", "--otval-k=2")
    assert [name.rpartition("::")[2] for name in names] == ["teacher[m-0]", "teacher[m-1]", "judge_task", "judge_trace"]


def test_attempts_that_are_reviewed_stay_with_their_task():
    stages = ("teacher[m-0]", "teacher[m-1]", "judge_task", "judge_trace")
    both = [*items("a", stages=stages), *items("b", stages=stages[:-1])]
    units = make_units(both, lambda dataset, task, image: _Nothing())
    assert [list(unit.items) for unit in units] == [[0, 1, 2, 3], [4], [5], [6]]


class _Nothing:
    image, ready, seconds = "", False, {}


def test_a_contract_fixes_who_judges_and_how(project):
    project.dataset(tasks={"a": {}})
    options = ("datasets/demo", *JUDGE, "-m", "judge_task", "--otval-votes=3")
    assert project.run(*options, "--otval-prepare-contract", "c.json").status == 0
    assert json.loads((project.root / "c.json").read_text())["settings"] == {"judge": "org/judge", "votes": 3}
    outcome = project.run("--otval-contract", "c.json", URL)
    assert (outcome.status, list(project.ledger())) == (0, items("a", stages=("judge_task",)))
    assert "--otval-votes differs" in project.run("--otval-contract", "c.json", "--otval-votes=2").refusal


def test_who_judges_changes_no_other_answer(project):
    """Attempts that were paid for are not made again for a judge."""
    project.dataset(tasks={"a": {}})
    teach = ("-m", "teacher", "--otval-teacher=m", URL)
    project.run("datasets/demo", *teach)
    run = project.runs[-1]
    more = (*JUDGE, "-m", "teacher or judge")
    result = project.pytester.runpytest_inprocess("-p", "otval_stub", f"--otval-resume={run}", *more)
    assert "not asked again: 1 answers of this run" in result.outlines
    made = [line["id"] for line in read_ledger(run) if line["kind"] == "result"]
    assert made == items("a", stages=("teacher[m-0]", "judge_task", "judge_trace"))


@pytest.mark.parametrize(("name", "words"), [("nowhere", "it has no ledger"), ("latest", "there is no run in")])
def test_a_run_of_attempts_that_there_is_not(project, name, words):
    project.dataset()
    assert words in project.run("datasets/demo", *JUDGE, "-m", "judge_trace", f"--otval-trials={name}").refusal


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_latest_run_is_the_one_before(project, workers):
    project.dataset(tasks={"a": {}})
    project.run("datasets/demo", "-m", "static")
    before = project.runs[-1]
    words = ("datasets/demo", *JUDGE, "-m", "judge_trace", "--otval-trials=latest", "-n", workers)
    assert project.process(*words).status == 0
    settings = json.loads((project.runs[-1] / "run.json").read_text())["run_settings"]
    assert settings["trials"] == str(before)


def test_a_judge_is_not_submitted(project):
    project.dataset()
    outcome = project.run("datasets/demo", *JUDGE[1:], "-m", "judge", "--otval-submit=slurm")
    assert "--otval-judge is of runs on this machine" in outcome.refusal


RUBRIC = 'kind = "KIND"\n[[criteria]]\nid = "a"\nquestion = "?"\n'


def test_a_contract_fixes_what_is_judged_by(project):
    project.dataset(tasks={"a": {}})
    (project.root / "rubrics").mkdir()
    file = project.root / "rubrics" / "instruction.toml"
    file.write_text(RUBRIC.replace("KIND", "instruction"))
    words = ("datasets/demo", *JUDGE, "-m", "judge_task", "--otval-prepare-contract", "c.json")
    assert project.run(*words).status == 0
    assert project.run("--otval-contract", "c.json", URL).status == 0
    file.write_text(file.read_text().replace("?", "!"))
    outcome = project.run("--otval-contract", "c.json", URL)
    assert "1 differences (rubrics 1)" in outcome.refusal


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((URL, "--otval-judge=m", "--otval-rubric=none.toml"), "none.toml: cannot be read"),
        ((URL, "--otval-judge=m", "--otval-rubric=one.toml,two.toml"), "are both of kind 'trace'"),
        (("--otval-judge=m",), "the model m has no base_url"),
        (("--otval-judge=small",), "a context of 2000 tokens is too short for "),
        ((URL, "--otval-judge=m", "--otval-budget-usd=1"), "has no prices"),
    ],
)
def test_what_no_review_could_do_without_is_told_before_anything_runs(project, options, words):
    project.dataset()
    for name in ("one.toml", "two.toml"):
        (project.root / name).write_text(RUBRIC.replace("KIND", "trace"))
    (project.root / "clusters").mkdir()
    (project.root / "clusters" / "here.toml").write_text(
        '[models."small"]\nbase_url = "http://127.0.0.1:9/v1"\ncontext = 2000\n'
    )
    assert words in project.run("datasets/demo", "-m", "judge", "--otval-cluster=here", *options).refusal
    assert not (project.runs[-1] / "ledger").exists()
