"""Attempts of models: one item each, spread, resumed and fixed as all others are."""

import json

import pytest
import scipy.stats  # noqa: F401  (pytester forgets what a run imported, and numpy cannot be imported twice)

from pytest_otval.core import OtvalUsageError, node_id
from pytest_otval.glue.units import unit_of
from pytest_otval.ledger import read_ledger
from pytest_otval.stages.spec import model_key, own_stages

pytest_plugins = ["pytester"]

URL = "--otval-base-url=http://127.0.0.1:9/v1"
TEACH = ("-m", "teacher", URL, "--otval-teacher", "org/some model:8b")
KEY = "org-some-model-8b"


def attempts(task, *numbers, key=KEY):
    return [node_id("demo", task, f"teacher[{key}-{number}]") for number in numbers]


def test_an_item_for_each_attempt(project):
    project.dataset()
    assert project.collect("datasets/demo", *TEACH, "--otval-k", "2") == [*attempts("a", 0, 1), *attempts("b", 0, 1)]


def test_attempts_run_after_the_other_stages_and_only_where_asked_for(project):
    project.dataset(tasks={"a": {}})
    options = ("datasets/demo", "--otval-teacher=m", "--otval-k=2")
    names = [one.rpartition("::")[2] for one in project.collect(*options, "-m", "noop or teacher")]
    assert names == ["noop", "teacher[m-0]", "teacher[m-1]"]
    assert not [one for one in project.collect(*options) if "teacher" in one]


def test_models_in_their_order(project):
    project.dataset(tasks={"a": {}})
    found = project.collect("datasets/demo", "-m", "teacher", "--otval-teacher=z,a,z")
    assert found == [*attempts("a", 0, key="z"), *attempts("a", 0, key="a")]


def test_one_attempt_by_its_id(project):
    project.dataset(tasks={"a": {}})
    (wanted,) = attempts("a", 3)
    outcome = project.run(wanted, *TEACH[2:], "--otval-k=4")
    assert (outcome.status, list(project.ledger())) == (0, [wanted])


@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_unsolved_attempt_is_an_answer(project, workers):
    project.dataset(tasks={"a": {"teacher": "expected|unsolved it scored 0.25|no-reward"}})
    outcome = project.process("datasets/demo", *TEACH, "--otval-k=3", "-n", workers, "-v")
    assert outcome.status == 1
    assert any("UNSOLVED" in line and f"teacher[{KEY}-1]" in line for line in outcome.lines)
    lines = project.ledger()
    assert [lines[one]["class"] for one in attempts("a", 0, 1, 2)] == ["expected", "unsolved", "no-reward"]
    assert [lines[one]["verdict"] for one in attempts("a", 0, 1, 2)] == ["pass", "pass", "fail"]
    assert {(lines[one]["stage"], lines[one]["attempt"]) for one in lines} == {("teacher", n) for n in range(3)}


def test_more_attempts_later_only_add(project):
    project.dataset()
    project.run("datasets/demo", *TEACH, "--otval-k=2")
    run = project.runs[-1]
    result = project.pytester.runpytest_inprocess("-p", "otval_stub", f"--otval-resume={run}", "--otval-k=3")
    assert "not asked again: 4 answers of this run" in result.outlines
    made = [line["id"] for line in read_ledger(run) if line["kind"] == "result"]
    assert sorted(made) == sorted([*attempts("a", 0, 1, 2), *attempts("b", 0, 1, 2)])


def test_a_contract_names_each_attempt(project):
    folder = project.dataset(tasks={"a": {}})
    (folder / "tasks" / "a" / "environment").mkdir()
    options = ("datasets/demo", *TEACH, "--otval-k=2", "--otval-max-steps=7")
    assert project.run(*options, "--otval-prepare-contract", "c.json").status == 0
    contract = json.loads((project.root / "c.json").read_text())
    assert contract["settings"] == {"teacher": ["org/some model:8b"], "k": 2, "max_steps": 7}
    outcome = project.run("--otval-contract", "c.json", URL)
    assert (outcome.status, sorted(project.ledger())) == (0, attempts("a", 0, 1))
    assert "--otval-k differs" in project.run("--otval-contract", "c.json", "--otval-k=3").refusal


def test_attempts_of_one_task_are_spread():
    first, second = attempts("a", 0, 1)
    assert unit_of(first) != unit_of(second)
    assert unit_of(node_id("demo", "a", "oracle")) == unit_of(node_id("demo", "a", "noop"))


def test_nobody_who_makes_attempts(project):
    project.dataset()
    assert "--otval-teacher MODEL" in project.run("datasets/demo", "-m", "teacher or noop").refusal
    assert project.run("datasets/demo", "-m", "noop").status == 0


@pytest.mark.parametrize(("model", "key"), [("m", "m"), ("org/m_1.5-b:x", "org-m_1.5-b-x"), ("--a//b--", "a-b")])
def test_names_of_models(model, key):
    assert model_key(model) == key


@pytest.mark.parametrize("model", ["/", "-", " ", "\n"])
def test_names_that_leave_nothing(model):
    with pytest.raises(OtvalUsageError, match="no name of a model"):
        model_key(model)


def test_models_of_one_key(project):
    project.dataset()
    assert "run them apart" in project.run("datasets/demo", "-m", "teacher", "--otval-teacher", "a/b,a:b").refusal
    with pytest.raises(OtvalUsageError, match="run them apart"):
        own_stages(("a/b", "a:b"))


@pytest.fixture
def profile(project):
    """A cluster whose model asks for a key."""
    folder = project.root / "clusters"
    folder.mkdir()
    (folder / "here.toml").write_text(
        '[models."m"]\nbase_url = "http://127.0.0.1:9/v1"\nkey_variable = "CANARY_KEY"\n', encoding="utf-8"
    )
    return ("-m", "teacher", "--otval-teacher=m", "--otval-cluster=here")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--otval-teacher=other",), "the model other has no base_url"),
        ((), "CANARY_KEY"),
        (("--otval-base-url=ftp://x",), "--otval-base-url"),
        (("--otval-agent=nobody",), "--otval-agent nobody: there is none: plugins give mini-swe-agent, tools"),
        (("--otval-teacher=other", URL, "--otval-budget-usd=1"), "has no prices"),
    ],
)
def test_what_no_attempt_could_do_without_is_told_before_anything_runs(project, profile, monkeypatch, more, words):
    monkeypatch.delenv("CANARY_KEY", raising=False)
    project.dataset()
    assert words in project.run("datasets/demo", *profile, *more).refusal
    assert not (project.runs[-1] / "ledger").exists()


def test_with_workers_too(project, profile, monkeypatch):
    monkeypatch.delenv("CANARY_KEY", raising=False)
    project.dataset()
    assert "CANARY_KEY" in project.process("datasets/demo", *profile, "-n2").refusal


def test_nothing_is_asked_of_who_makes_no_attempt(project, profile, monkeypatch):
    monkeypatch.delenv("CANARY_KEY", raising=False)
    project.dataset(tasks={"a": {}})
    assert project.run("datasets/demo", "-m", "noop", *profile[2:]).status == 0
    assert project.collect("datasets/demo", *profile)
    monkeypatch.setenv("CANARY_KEY", "canary-1234567890")
    assert project.run("datasets/demo", *profile).status == 0


def test_an_attempt_that_is_named(project, profile, monkeypatch):
    monkeypatch.delenv("CANARY_KEY", raising=False)
    project.dataset()
    assert "CANARY_KEY" in project.run(attempts("a", 0, key="m")[0], *profile[2:]).refusal
