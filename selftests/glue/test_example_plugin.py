"""A plugin of others adds a stage, an agent, a check and a column; and what plugins may not do is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_otval.ledger import read_ledger

pytest_plugins = ["pytester"]

FOLDER = Path(__file__).parent
DEMO = FOLDER.parents[1] / "datasets" / "demo"


def test_its_stage_is_listed_with_its_mark_and_runs_only_if_asked_for(project):
    project.dataset(tasks={"a": {}})
    named = "datasets/demo/tasks/a/task.toml::vandal"
    assert named not in project.collect("-p", "otval_example", "datasets/demo")
    assert project.collect("-p", "otval_example", "datasets/demo", "-m", "vandal") == [named]
    assert project.collect("-p", "otval_example", named) == [named]
    markers = project.run("-p", "otval_example", "--markers").lines
    assert any(line.startswith("@pytest.mark.vandal: the vandal stage of a task") for line in markers)


@pytest.mark.parametrize(
    ("hook", "refusal"),
    [
        ("def pytest_otval_stages(): return [Stage('oracle', 'a:b', '?')]", "two plugins give stage 'oracle'"),
        ("def pytest_otval_stages(): return [Stage('my-stage', 'a:b', '?')]", "stage 'my-stage': its name is also"),
    ],
)
def test_names_that_cannot_be_are_refused(project, hook, refusal):
    project.dataset()
    project.pytester.makeconftest(f"from pytest_otval.stages.spec import Stage\n{hook}\n")
    assert project.process("datasets/demo").refusal.startswith(refusal)


def test_a_misspelt_hook_is_refused(project):
    project.dataset()
    project.pytester.makeconftest("def pytest_otval_stage(): return []\n")
    assert "unknown hook 'pytest_otval_stage'" in "\n".join(project.process("datasets/demo").lines)


def test_a_stage_whose_module_is_missing_is_an_error_of_its_items(project):
    project.dataset(tasks={"a": {}})
    project.pytester.makeconftest(
        "from pytest_otval.stages.spec import Stage\n"
        "def pytest_otval_stages(): return [Stage('lost', 'no_such_module:answer', '?')]\n"
    )
    outcome = project.process("datasets/demo", "-m", "lost")
    assert (outcome.status, outcome.counts) == (8, {"error": 1})
    assert project.ledger()["datasets/demo/tasks/a/task.toml::lost"]["class"] == "internal"


def test_datasets_are_found_where_a_plugin_says(project, tmp_path):
    project.dataset("elsewhere", tasks={"a": {}}, at=tmp_path / "shelf" / "datasets")
    named = "datasets/elsewhere/tasks/a/task.toml::static"
    assert "elsewhere" in project.run(named).refusal
    project.pytester.makeconftest(
        f"from pathlib import Path\ndef pytest_otval_datasets(): return [Path({str(tmp_path / 'shelf')!r})]\n"
    )
    assert project.process("--co", "-q", named).ids == [named]


@pytest.mark.integration
@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_all_it_adds_is_used_and_reported(tmp_path, workers):
    argv = [sys.executable, "-m", "pytest", "-p", "otval_example", "-p", "no:cacheprovider", workers, DEMO]
    argv += ["--otval-tasks=answer-file", "-m", "vandal or static", f"--otval-out={tmp_path / 'run'}"]
    variables = {**os.environ, "PYTHONPATH": str(FOLDER)}
    done = subprocess.run(argv, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    lines = [line for line in read_ledger(tmp_path / "run") if "/answer-file/" in line["id"]]
    results = {line["stage"]: line for line in lines if line["kind"] == "result"}
    assert results.keys() == {"static", "vandal"}
    assert "example-short-instruction" in {check["check"] for check in results["static"]["checks"]}
    assert (results["vandal"]["verdict"], results["vandal"]["score"]) == ("pass", 0.0)
    assert results["vandal"]["columns"]["Verifier share"].endswith("%")
    (trial,) = [line for line in lines if line["kind"] == "trial"]
    assert trial["id"] == "datasets/demo/tasks/answer-file/task.toml::vandal#vandal/0"
    assert trial["steps"][0]["agent_status"] == 0
