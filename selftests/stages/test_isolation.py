"""Which isolation level a trial has, and what Harbor's own, ``none``, does in its one container."""

import argparse

import pytest

from pytest_otval.glue.options import attack_ids
from pytest_otval.stages.question import Question
from pytest_otval.task.dataset import DatasetSettings
from selftests.fakes import TOML, Answer, ask, make_task, writes_reward

PAYS_NOTHING = writes_reward("0")
SEPARATE = TOML + 'environment_mode = "separate"\n'


@pytest.fixture
def isolation(fake_machine, tmp_path):
    def run(run=None, task=None, dataset="fresh", toml=TOML, script=PAYS_NOTHING, **files):
        toml += f"[metadata.otval]\nisolation = {task!r}\n" if task else ""
        machine = fake_machine(script, isolation=run)
        made = make_task(tmp_path, toml=toml, files={"tests/Dockerfile": "FROM x\n", **files})
        result, _ = ask("noop", machine, Question(made, DatasetSettings(isolation=dataset), tmp_path / "evidence"))
        return result, machine.sandbox

    return run


@pytest.mark.parametrize(
    ("run", "task", "dataset", "level"),
    [
        (None, None, "fresh", "fresh"),
        (None, None, "none", "none"),
        (None, "fresh", "none", "fresh"),
        (None, "none", "fresh", "none"),
        ("none", "fresh", "fresh", "none"),
        ("fresh", "none", "none", "fresh"),
    ],
)
def test_the_run_beats_the_task_and_the_task_its_dataset(isolation, run, task, dataset, level):
    result, _ = isolation(run, task, dataset)
    assert (result.reason, result.facts["isolation"]) == ("expected", level)
    assert result.facts["scope"] == ("trial" if level == "none" else "phase")


def test_a_level_that_there_is_not(isolation):
    result, _ = isolation(task="some")
    assert (result.reason, "some" in result.headline) == ("bad-task", True)


def test_of_a_separate_verifier(isolation):
    result, sandbox = isolation("none", toml=SEPARATE)
    assert (result.reason, result.facts["isolation"], result.facts["scope"]) == ("expected", "separate", "phase")
    assert all("/.otval-inbox" not in {bind.target for bind in one.spec.binds} for one in sandbox.containers)


def said(sandbox):
    return [command.argv[-1] for command in sandbox.commands]


def test_nothing_is_cleared_but_what_harbor_clears(isolation):
    _, sandbox = isolation("none")
    (container,) = sandbox.containers
    assert "/tests" not in {bind.target for bind in container.spec.binds}
    words = said(sandbox)
    removal = words.index("rm -f -- /logs/verifier/reward.txt /logs/verifier/reward.json")
    assert removal < words.index("/tests/test.sh")
    assert not any("-delete" in word for word in words)


@pytest.mark.parametrize("answer", [Answer(status=1), Answer("timeout", None)])
def test_old_rewards_that_stay_are_no_reward(isolation, answer):
    def script(container, command):
        return answer if command.argv[-1].startswith("rm -f") else writes_reward("1")(container, command)

    result, _ = isolation("none", script=script)
    assert result.reason == "tampered"


def test_tests_of_an_earlier_step_go(isolation):
    toml = TOML + "".join(f'[[steps]]\nname = "{name}"\n' for name in ("one", "two"))
    files = {f"steps/{name}/tests/test.sh": "x" for name in ("one", "two")}
    result, sandbox = isolation("none", toml=toml, **files)
    assert result.reason == "expected"
    assert said(sandbox).count("find /tests -mindepth 1 -delete") == 1
    assert len(sandbox.containers) == 2


def test_ids_of_attacks():
    assert attack_ids("") == ""
    assert attack_ids("pth,activate") == "pth,activate"
    for wrong in ("pht", "pth,", "pth, activate"):
        with pytest.raises(argparse.ArgumentTypeError):
            attack_ids(wrong)
