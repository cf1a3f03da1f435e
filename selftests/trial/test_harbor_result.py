"""What we write in Harbor's shape is what the real Harbor 0.26 read when results.json was recorded."""

import io
import json
import os
import tarfile
from datetime import datetime
from pathlib import Path

import pytest

from pytest_otval.stages.question import Question
from pytest_otval.task.dataset import DatasetSettings
from pytest_otval.trial.harbor_result import ERRORS, write_harbor_result
from selftests.fakes import TOML, Answer, ask, make_task, writes_reward
from selftests.trial.harbor_cases import STEPS, cases, outcome

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "harbor" / "results.json").read_text(encoding="utf-8"))
CASES = cases()


def as_json(value):
    return json.loads(json.dumps(value, allow_nan=False))


@pytest.mark.parametrize("name", CASES)
def test_harbor_read_exactly_this(name):
    recorded = RECORDED["cases"].get(name, {})
    assert as_json(CASES[name]["ours"]) == recorded.get("ours"), "record anew: see selftests/trial/harbor_cases.py"


def test_nothing_else_is_recorded():
    assert set(RECORDED["cases"]) == set(CASES)
    assert RECORDED["harbor"].startswith("0.26.")


def kept(ours, harbors, where=""):
    """Yield each place where Harbor did not keep what we wrote: a key it does not know it drops without a word."""
    if isinstance(ours, dict) and isinstance(harbors, dict):
        for key, value in ours.items():
            if key not in harbors:
                yield f"{where}.{key} is unknown"
            else:
                yield from kept(value, harbors[key], f"{where}.{key}")
    elif isinstance(ours, list) and isinstance(harbors, list) and len(ours) == len(harbors):
        for number, (one, other) in enumerate(zip(ours, harbors, strict=True)):
            yield from kept(one, other, f"{where}[{number}]")
    elif ours != harbors and not same_time(ours, harbors):
        yield f"{where}: {ours!r} became {harbors!r}"


def same_time(one, other):
    try:
        return datetime.fromisoformat(one) == datetime.fromisoformat(other)
    except (TypeError, ValueError):
        return False


@pytest.mark.parametrize("name", CASES)
def test_harbor_keeps_all_of_it(name):
    recorded = RECORDED["cases"][name]
    assert list(kept(recorded["ours"], recorded["harbor"])) == []


def test_what_harbor_drops_would_be_seen():
    assert list(kept({"a": 1, "b": [{"c": 2}]}, {"a": 2, "b": [{}]})) == [".a: 1 became 2", ".b[0].c is unknown"]


def test_names_of_errors_have_a_policy_in_harbor():
    """An unknown name counts as a valid reward there."""
    policies = {
        error["exception_type"]: error["policy"]
        for case in RECORDED["cases"].values()
        if case["model"] == "TrialResult" and (error := case["harbor"]["exception_info"])
    }
    for reason in ("verifier-timeout", "memory-limit"):
        assert policies[ERRORS[reason]]["has_valid_reward"] is False
    assert policies["AgentTimeoutError"] == {"should_retry": False, "should_grade": True, "has_valid_reward": True}


def result_of(fake_machine, tmp_path, script, toml=TOML, stage="oracle"):
    machine = fake_machine(script)
    ask(stage, machine, Question(make_task(tmp_path, toml=toml), DatasetSettings(), tmp_path / "evidence"))
    return json.loads((tmp_path / "evidence" / "result.json").read_text())


def test_it_lies_beside_the_logs(fake_machine, tmp_path):
    result = result_of(fake_machine, tmp_path, writes_reward("1"))
    assert result["verifier_result"] == {"rewards": {"reward": 1.0}}
    assert result["exception_info"] is None and result["reward_valid"] is True
    found = {str(path.relative_to(tmp_path / "evidence")) for path in (tmp_path / "evidence").rglob("*.*")}
    assert found == {"result.json", "agent/oracle.txt", "verifier/test-stdout.txt", "verifier/reward.txt"}


def test_times_are_in_order(fake_machine, tmp_path):
    result = result_of(fake_machine, tmp_path, writes_reward("1"))
    phases = [result[name] for name in ("environment_setup", "agent_execution", "verifier")]
    times = [phase[end] for phase in phases for end in ("started_at", "finished_at")]
    times = [datetime.fromisoformat(time) for time in (result["started_at"], *times, result["finished_at"])]
    assert times == sorted(times) and all(time.utcoffset().total_seconds() == 0 for time in times)


def files_below(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_each_step_has_a_folder(fake_machine, tmp_path):
    result = result_of(fake_machine, tmp_path, writes_reward("1"), toml=STEPS)
    logs = {"agent/oracle.txt", "verifier/test-stdout.txt", "verifier/reward.txt"}
    expected = {f"steps/{step}/{log}" for step in ("one", "two") for log in logs}
    assert files_below(tmp_path / "evidence") == {"result.json", *expected}
    assert [step["step_name"] for step in result["step_results"]] == ["one", "two"]
    assert all(step["agent_execution"] and step["verifier"] for step in result["step_results"])


def test_step_that_was_stopped_has_the_error(fake_machine, tmp_path):
    reward = writes_reward("1")

    def script(container, command):
        if command.argv[-1] == "/solution/solve.sh" and "two" in str(command.log):
            return Answer("timeout", None)
        return reward(container, command)

    result = result_of(fake_machine, tmp_path, script, toml=STEPS)
    one, two = result["step_results"]
    assert one["exception_info"] is None and one["verifier_result"] == {"rewards": {"reward": 1.0}}
    assert two["exception_info"]["exception_type"] == "AgentTimeoutError" and two["verifier_result"] is None
    assert result["exception_info"] is None and result["reward_valid"] is False


def test_files_of_the_agent_are_kept_also_of_one_that_was_stopped(fake_machine, tmp_path):
    def script(container, command):
        if command.argv[-1] == "/solution/solve.sh":
            logs = container.bound("/logs/agent")
            (logs / "trace.json").write_text("[]")
            (logs / "oracle.txt").write_text("forged")
            (logs / "link").symlink_to("/etc/passwd")
            return Answer("timeout", None, b"said\n")
        return None

    result_of(fake_machine, tmp_path, script)
    assert files_below(tmp_path / "evidence") == {"result.json", "agent/oracle.txt", "agent/trace.json"}
    assert (tmp_path / "evidence" / "agent" / "oracle.txt").read_text() == "said\n"


def test_artifacts_for_a_separate_verifier_are_kept(fake_machine, tmp_path):
    reward = writes_reward("1")

    def script(container, command):
        if command.stdout is not None:
            with os.fdopen(os.dup(command.stdout), "wb") as file, tarfile.open(fileobj=file, mode="w|") as tar:
                info = tarfile.TarInfo("logs/artifacts/answer")
                info.size = 2
                tar.addfile(info, io.BytesIO(b"42"))
        return reward(container, command)

    result = result_of(fake_machine, tmp_path, script, toml=TOML + 'environment_mode = "separate"\n')
    assert result["verifier_environment_mode"] == "separate"
    assert (tmp_path / "evidence" / "artifacts" / "logs" / "artifacts" / "answer").read_bytes() == b"42"


def test_trial_that_never_began_has_none(tmp_path):
    began, never = outcome(), outcome()
    del never.spans["", "total"]
    for name, trial in (("began", began), ("never", never)):
        trial.evidence = tmp_path / name
        trial.evidence.mkdir()
        write_harbor_result(make_task(tmp_path), trial, None)
    assert (tmp_path / "began" / "result.json").is_file() and not (tmp_path / "never" / "result.json").exists()
