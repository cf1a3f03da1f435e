"""Whole runs of the judge's stages: pytest processes, real containers, a real server with scripted judges."""

import json

import pytest

from pytest_otval.__main__ import main
from pytest_otval.core import node_id
from pytest_otval.judge.model import NOT_MEASURED, Review
from selftests.fakes import make_task
from selftests.glue.model_runs import model_project

pytestmark = pytest.mark.integration

SOLVE = "mkdir -p /app; echo 1 >/app/answer"
TEST = "test -e /app/answer && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt"
POLICIES = f"""
seed = 1
[[tasks]]
instruction = 'the answer'
commands = [{json.dumps(SOLVE)}]
[[faults]]
criterion = "weak_test"
quote = "test -e /app/answer"
candidate = "mkdir -p /app; touch /app/answer"
[[faults]]
criterion = "environment_fault"
quote = "command not found"
"""
TASK, TRACE = (node_id("set", "task", stage) for stage in ("judge_task", "judge_trace"))


@pytest.fixture
def project(real, image, tmp_path):
    with model_project(tmp_path, image, POLICIES) as found:
        make_task(tmp_path, solve=SOLVE, test=TEST, files={"instruction.md": "write the answer 1 to /app/answer\n"})
        (tmp_path / "set").rename(tmp_path / "datasets" / "set")
        yield found


def judge(project, model, *more, marks="judge_task"):
    url = f"--otval-base-url={project.server.url}"
    return ("datasets/set", "-m", marks, f"--otval-judge=judge-{model}", url, *more)


def answer(project, id=TASK):
    """The last line of an item, and its reviews."""
    line = project.results()[id][-1]
    return line, [Review.from_dict(one) for one in line["judge"]]


def standings(review):
    return {one.criterion: one.standing for one in review.judgements if one.standing}


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_trial_shows_a_weak_test(project, workers):
    status, text = project.run(*judge(project, "right", "-n", workers))
    assert status == 1, text
    line, (review,) = answer(project)
    assert (line["class"], line["stage"], line["model"]) == ("judged-faulty", "judge_task", "")
    assert standings(review) == {"weak_test": "executed"}
    assert "weak_test: tests/test.sh:2: It is there." in text
    assert "reviews of tasks by judge-right: 1; 2 answers, 0 from the cache" in text
    asked = project.server.asked()["requests"]
    assert asked == 2
    status, text = project.run(*judge(project, "right", "-n", workers))
    assert (status, project.server.asked()["requests"]) == (1, asked)
    assert "2 answers, 2 from the cache, 0 tokens" in text
    assert answer(project)[1][0].judgements == review.judgements


def test_one_that_flags_everything(project):
    """Trials take back what they can; what is left is the word of a model that refutes nothing."""
    status, text = project.run(*judge(project, "flags-all"))
    assert status == 1, text
    _, (review,) = answer(project)
    found = standings(review)
    assert (found["weak_test"], found["brittle_test"]) == ("disproved", "advisory")
    assert "executed" not in found.values()


def test_below_the_floor_of_a_calibration_the_word_of_a_model_is_advice(project, monkeypatch):
    """The judge is one that flags everything; its answers are known, and decide nothing any more."""
    words = judge(project, "flags-all")
    assert project.run(*words)[0] == 1
    monkeypatch.setenv("OT_WORKSPACE", str(project.root / "workspace"))
    monkeypatch.delenv("OT_CLUSTER", raising=False)
    monkeypatch.chdir(project.root)
    calibration = ["datasets/set", "--judge=judge-flags-all", f"--base-url={project.server.url}"]
    assert main(["judge", "calibrate", *calibration]) == 0
    status, text = project.run(*words)
    assert status == 1, text
    line, (review,) = answer(project)
    assert line["cached_from"] is None
    # No known fault of this one can be put into the task.
    assert [name for name, standing in standings(review).items() if standing == "stands"] == ["unstated_output_form"]
    found = {one.criterion: one.measured for one in review.judgements}
    assert found["guessable"] == NOT_MEASURED
    assert f"so it decides nothing (judge-flags-all at {project.server.url}, " in found["answer_given_away"]
    assert f"fails of criteria that were {NOT_MEASURED} (judge calibrate): " in text


@pytest.mark.parametrize(
    ("model", "reason", "status"),
    [
        pytest.param("verbose", "judged-faulty", 1, marks=pytest.mark.slow),
        ("misquotes", "expected", 0),
        pytest.param("obeys", "judged-faulty", 1, marks=pytest.mark.slow),
        ("unstructured", "judge-unreadable", 8),
        pytest.param("cut", "judge-unreadable", 8, marks=pytest.mark.slow),
    ],
)
def test_other_judges(project, model, reason, status):
    found, text = project.run(*judge(project, model))
    assert (found, answer(project)[0]["class"]) == (status, reason), text


def test_votes(project):
    status, text = project.run(*judge(project, "inconsistent", "--otval-votes=3"))
    assert status in (0, 1), text
    _, (review,) = answer(project)
    assert review.kappa is not None
    assert {len(one.votes) for one in review.judgements} == {2, 3}
    assert f"kappa {review.kappa:.2f}" in text


@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.slow), "2"])
def test_attempts_are_reviewed_in_the_run_that_makes_them(project, workers):
    teach = ("--otval-teacher=sometimes", "--otval-k=3", "--otval-agent=tools", "-n", workers)
    status, text = project.run(*judge(project, "right", *teach, marks="teacher or judge_trace"))
    assert status == 0, text
    line, reviews = answer(project, TRACE)
    attempts = [node_id("set", "task", f"teacher[sometimes-{number}]") for number in range(3)]
    assert [one.subject for one in reviews] == attempts
    solved = [project.results()[id][-1]["class"] == "expected" for id in attempts]
    classes = [one.classification for one in reviews]
    assert [one == "honest-success" for one in classes] == solved, classes
    assert (line["class"], line["headline"] in text) == ("expected", False)
    out = project.outs[-1]
    asked = project.server.asked()["requests"]
    # The run goes on: nothing is asked again. Another run reviews the same attempts, from the cache.
    status, text = project.run("-n", workers, resumes=out)
    assert (status, "not asked again: 4 answers of this run" in text) == (0, True), text
    status, text = project.run(*judge(project, "right", f"--otval-trials={out}", marks="judge_trace"))
    assert (status, project.server.asked()["requests"]) == (0, asked), text
    assert [one.classification for one in answer(project, TRACE)[1]] == classes


def test_without_attempts(project):
    status, text = project.run(*judge(project, "right", marks="judge_trace"))
    assert (status, answer(project, TRACE)[0]["class"]) == (5, "no-attempts"), text


def test_more_attempts_are_another_question(project):
    teach = ("--otval-teacher=solves", "--otval-agent=tools")
    status, text = project.run(*judge(project, "right", *teach, marks="teacher or judge_trace"))
    assert status == 0, text
    status, text = project.run("--otval-k=2", resumes=project.outs[-1])
    assert status == 0, text
    lines = project.results()[TRACE]
    assert [len(line["judge"]) for line in lines] == [1, 2]


def test_reuse_and_a_contract(project):
    words = judge(project, "right")
    status, text = project.run(*words, "--otval-reuse")
    assert status == 1, text
    (run,) = project.outs
    runs = project.root / "workspace" / "runs"
    runs.mkdir()
    (runs / "one").symlink_to(run)
    status, text = project.run(*words, "--otval-reuse")
    assert (status, "not asked again: 1 answers of earlier runs" in text) == (1, True), text
    status, text = project.run(*words, "--otval-reuse", "--otval-votes=2")
    assert "not asked again" not in text
    status, text = project.run(*words, "--otval-prepare-contract=c.json")
    assert status == 0, text
    status, text = project.run("--otval-contract=c.json", words[-1])
    assert (status, answer(project)[0]["class"]) == (1, "judged-faulty"), text


def test_a_rubric_of_the_user(project):
    rubric = '[[criteria]]\nname = "weak_test"\ndescription = "Is it strong?"\n'
    (project.root / "mine.toml").write_text(rubric)
    status, text = project.run(*judge(project, "right", "--otval-rubric=mine.toml"))
    assert status == 0, text
    _, (review,) = answer(project)
    assert standings(review) == {"weak_test": "advisory"}
    (project.root / "mine.toml").write_text(rubric + "blocked = true\n")
    status, text = project.run(*judge(project, "right", "--otval-rubric=mine.toml"))
    assert (status, "mine.toml:4: criterion 1 (weak_test): unknown key 'blocked'" in text) == (4, True), text


@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.slow), "2"])
def test_what_reviews_would_take(project, workers):
    words = judge(project, "right", "--otval-dry-run", "-n", workers, marks="judge or noop")
    status, text = project.run(*words)
    assert (status, project.server.asked()["requests"], project.results()) == (0, 0, {}), text
    assert "judge_task: 1 review; at least 1 answer, about " in text
    assert "judge_trace: nothing to be reviewed" in text
    status, text = project.run(*judge(project, "right"))
    assert (status, project.server.asked()["requests"]) == (1, 2), text
    status, text = project.run(*words)
    assert "judge_task: 1 review, all from the cache" in text
    assert project.server.asked()["requests"] == 2
    status, text = project.run("datasets/set", "-m", "noop", "--otval-dry-run")
    assert (status, "--otval-submit PROFILE, or -m judge" in text) == (4, True), text
