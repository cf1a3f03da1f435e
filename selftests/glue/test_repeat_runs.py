"""Repeats as a user runs them: with the stub, and in real containers with tasks that only a repeat finds out."""

import subprocess
import sys
from pathlib import Path

import pytest
import scipy.special  # noqa: F401  once a process: pytester forgets modules that a run in this process imports
import tomli

from pytest_otval.ledger import read_ledger
from selftests.glue.conftest import ids

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
DATA = ROOT / "selftests" / "data" / "repeats"
MIXED = "expected|wrong-reward low|expected|expected"


def trials(run):
    """Return key, attempt and class of the trials of task a at oracle."""
    lines = [line for line in read_ledger(run) if line["kind"] == "trial" and line["id"].startswith(ids("a")[2])]
    return [(line["id"].partition("#")[2], line["attempt"], line["class"]) for line in lines]


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "workers"])
def test_mixed_attempts_are_a_failure_of_class_flaky(project, workers):
    project.dataset(tasks={"a": {"oracle": MIXED}, "b": {}})
    outcome = project.process("datasets/demo", "--otval-repeat=4", *workers)
    assert (outcome.status, outcome.counts) == (1, {"failed": 1, "passed": 8})
    line = project.ledger()[ids("a")[2]]
    assert (line["verdict"], line["class"], line["attempt"]) == ("fail", "flaky", 0)
    assert line["attempts"] == {"passed": 3, "count": 4, "low": 0.2838, "high": 0.9715}
    assert line["headline"].startswith(
        "3/4 attempts gave the expected answer, 75 % (95 % interval 28-97 %); the others"
    )
    assert line["seconds"] == {"total": 2.0}, "the sum of all attempts"
    assert any(text.startswith("flaky: 3/4 attempts gave") for text in outcome.lines)
    assert trials(project.runs[-1]) == [
        ("oracle/0", 0, "expected"),
        ("oracle/1", 1, "wrong-reward"),
        ("oracle/2", 2, "expected"),
        ("oracle/3", 3, "expected"),
    ]


def test_only_stages_whose_answers_may_differ_are_repeated(project):
    project.dataset(tasks={"a": {}})
    project.run("datasets/demo", "--otval-repeat=3")
    counts = {line["stage"]: (line["attempts"] or {}).get("count") for line in project.ledger().values()}
    assert counts == {"static": None, "build": None, "oracle": 3, "noop": 3}


def test_once_is_as_ever(project):
    project.dataset(tasks={"a": {"oracle": MIXED}})
    project.run("datasets/demo", "--otval-repeat=1")
    assert project.ledger()[ids("a")[2]]["attempts"] is None


def again(project, *args):
    """Run once more into the last run's folder."""
    out = project.runs[-1]
    outcome = project.run("datasets/demo", "-m", "oracle", *args, f"--otval-out={out}")
    project.runs[-1] = out
    return outcome


def test_later_attempts_add_up(project):
    project.dataset(tasks={"a": {"oracle": MIXED}})
    project.run("datasets/demo", "-m", "oracle", "--otval-repeat=2")
    again(project, "--otval-repeat=6")
    assert [trial[:2] for trial in trials(project.runs[-1])] == [(f"oracle/{n}", n) for n in range(6)]
    assert project.ledger()[ids("a")[2]]["attempts"]["count"] == 6


def test_what_is_known_is_not_run_again(project):
    project.dataset(tasks={"a": {"oracle": MIXED}})
    project.run("datasets/demo", "-m", "oracle", "--otval-repeat=4")
    outcome = again(project, "--otval-repeat=3")
    assert len(trials(project.runs[-1])) == 4
    assert (outcome.status, project.ledger()[ids("a")[2]]["attempts"]["count"]) == (1, 4)


def test_a_changed_task_starts_anew(project):
    dataset = project.dataset(tasks={"a": {"oracle": "wrong-reward low|expected"}})
    project.run("datasets/demo", "-m", "oracle", "--otval-repeat=2")
    (dataset / "tasks/a/instruction.md").write_text("New.\n")
    again(project, "--otval-repeat=2")
    assert [trial[:2] for trial in trials(project.runs[-1])][2:] == [("oracle/2", 0), ("oracle/3", 1)]
    assert project.ledger()[ids("a")[2]]["attempts"]["count"] == 2


def test_other_settings_start_anew(project):
    project.dataset(tasks={"a": {"oracle": MIXED}})
    project.run("datasets/demo", "-m", "oracle", "--otval-repeat=2")
    again(project, "--otval-repeat=2", "--otval-shuffle-tests")
    assert len(trials(project.runs[-1])) == 4


def test_an_error_leaves_the_rest_for_a_later_run(project):
    dataset = project.dataset(tasks={"a": {"oracle": "expected|expected|killed by whom|expected"}})
    outcome = project.run("datasets/demo", "-m", "oracle", "--otval-repeat=4")
    assert (outcome.status, outcome.counts) == (8, {"error": 1})
    assert [trial[1:] for trial in trials(project.runs[-1])] == [(0, "expected"), (1, "expected")]
    (dataset / "tasks/a/wanted/oracle").write_text("expected|expected|killed by whom|expected")
    assert again(project, "--otval-repeat=2").status == 0, "what is known is enough"


def test_a_known_bad_task_may_be_flaky(project):
    bad = "known_bad.a = {reason = 'races', owner = 'me', expires = 2999-01-01}"
    project.dataset(tasks={"a": {"oracle": MIXED}}, otval=bad)
    outcome = project.run("datasets/demo", "-m", "oracle", "--otval-repeat=4")
    assert (outcome.status, outcome.counts) == (0, {"xfailed": 1})


LIMITS = """
from pytest_otval.core import StageResult
from pytest_otval.stages.spec import Stage

def pytest_otval_stages(config):
    return [Stage("limits", "otval_limits:answer", "?", by_default=True)]

def answer(machine, question):
    return StageResult("wrong-reward", f"{question.task.config.agent.timeout_sec:g}")
"""


@pytest.mark.parametrize(("options", "limit"), [((), "30"), (("--otval-timeout-multiplier=2.5",), "75")])
def test_a_stage_of_another_plugin_has_scaled_limits(project, options, limit):
    project.dataset(tasks={"a": {}})
    project.pytester.makepyfile(otval_limits=LIMITS)
    project.pytester.syspathinsert()
    project.run("-p", "otval_limits", "datasets/demo", "-m", "limits", *options)
    (line,) = project.ledger().values()
    assert line["headline"] == limit


def test_a_clock_without_a_library_is_a_usage_error(project, monkeypatch):
    from pytest_otval.core import Conclusion
    from pytest_otval.trial import clock

    def missing():
        raise Conclusion("missing-tool", "there is no libfaketime: install it")

    project.dataset()
    monkeypatch.setattr(clock, "clock_library", missing)
    refusal = project.run("datasets/demo", "--otval-clock-shift=400d").refusal
    assert refusal == "--otval-clock-shift 400d: there is no libfaketime: install it"
    assert project.run("datasets/demo").status == 0


# --- in real containers -----------------------------------------------------------------------------------------------

EXPECTED = tomli.loads((DATA / "expected.toml").read_text())["tasks"]


def real_run(out: Path, tasks: Path, *options: str) -> dict[str, dict]:
    """Run oracle on tasks in real containers; return the result lines by task."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tasks), f"--otval-out={out}", *options]
    done = subprocess.run([*argv, "-m", "oracle"], cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout[-4000:], done.stderr[-2000:])
    lines = [line for line in read_ledger(out) if line["kind"] == "result"]
    return {line["id"].split("/")[3]: line for line in lines}


@pytest.mark.integration
@pytest.mark.parametrize("task", EXPECTED)
def test_each_fault_is_found_by_its_options(tmp_path, task):
    found = real_run(tmp_path / "run", DATA / "tasks" / task, *EXPECTED[task]["options"])
    assert found[task]["class"] == EXPECTED[task]["oracle"]


@pytest.mark.integration
def test_no_fault_shows_without_them(tmp_path):
    found = real_run(tmp_path / "run", DATA, "-n2")
    assert {task: line["class"] for task, line in found.items() if task != "coin-flip"} == dict.fromkeys(
        EXPECTED.keys() - {"coin-flip"}, "expected"
    )


@pytest.mark.integration
def test_a_real_repeat_goes_on_where_the_last_one_ended(tmp_path):
    out = tmp_path / "run"
    for count in (3, 5):
        line = real_run(out, DATA / "tasks/test-order", "--otval-shuffle-tests", f"--otval-repeat={count}")[
            "test-order"
        ]
        assert line["attempts"]["count"] == count
    lines = [line for line in read_ledger(out) if line["kind"] == "trial"]
    assert [(line["id"].rpartition("/")[2], line["attempt"]) for line in lines] == [(str(n), n) for n in range(5)]
    assert [line["steps"][0]["test_order"] for line in lines] == [{"seed": n, "tests": 2} for n in range(5)]
    assert {line["class"] for line in lines} == {"expected", "wrong-reward"}


@pytest.mark.integration
def test_a_past_date(tmp_path):
    line = real_run(tmp_path / "run", DATA / "tasks/expires", "--otval-clock-shift=-10000d")["expires"]
    assert (line["class"], "test_license_is_valid" in line["log"]) == ("wrong-reward", True)
