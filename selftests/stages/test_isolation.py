"""Which isolation level a trial has, and what Harbor's own, ``none``, does in its one container."""

import argparse

import pytest

from pytest_otval.core import StageResult
from pytest_otval.glue.options import attack_ids
from pytest_otval.stages.isolation import at_strongest
from pytest_otval.stages.question import Question
from pytest_otval.task.dataset import DatasetSettings
from selftests.fakes import TOML, Answer, FakeImages, ask, make_task, writes_reward
from selftests.runtimes.made import write_squashfs

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


@pytest.mark.parametrize(("level", "listed"), [("masked", "masked"), ("fresh", "masked"), ("masked", "none")])
def test_some_tasks_of_a_dataset(fake_machine, tmp_path, level, listed):
    """``[otval.levels]`` beats the level of the dataset, and the task's own beats both."""
    settings = DatasetSettings(isolation="none", levels={"task": listed})
    toml = TOML + (f"[metadata.otval]\nisolation = {level!r}\n" if level != listed else "")
    question = Question(make_task(tmp_path, toml=toml), settings, tmp_path / "evidence")
    result, _ = ask("noop", fake_machine(PAYS_NOTHING), question)
    assert result.facts["isolation"] == level


@pytest.mark.parametrize(
    ("level", "restored"),
    [("fresh", []), ("masked", ["usr"]), ("pristine", ["srv", "usr"])],
)
def test_what_is_put_back(fake_machine, tmp_path, level, restored):
    image = write_squashfs(tmp_path / "image.sqfs", {"/etc/hostname": ""})
    machine = fake_machine(writes_reward("1"), FakeImages(files=(image,)), isolation=level)
    toml = TOML.replace("[environment]", '[environment]\nworkdir = "/app"')
    task = make_task(tmp_path, toml=toml, files={"setup_files/setup.sh": "#!/bin/sh\n"})
    ask("oracle", machine, Question(task, DatasetSettings(), tmp_path / "evidence"))
    saved = [("saved", "set-up")] if restored else []
    assert machine.sandbox.layers == [*saved, ("restored", "tests"), *(("restored", name) for name in restored)]


def test_a_list_of_what_is_kept_that_is_wrong(fake_machine, tmp_path):
    toml = TOML + '[metadata.otval]\nkeep = ["numpy"]\n'
    question = Question(make_task(tmp_path, toml=toml), DatasetSettings(), tmp_path / "evidence")
    result, _ = ask("oracle", fake_machine(writes_reward("1"), isolation="masked"), question)
    assert (result.reason, "keep: 'numpy' is neither" in result.headline) == ("bad-task", True)


class Levels:
    """Answers by level."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    def __call__(self, machine, question):
        self.asked.append(question.isolation)
        reason, stood = self.answers.get(question.isolation, ("wrong-reward", question.isolation))
        return StageResult(reason, facts={"isolation": stood, "trials": [question.isolation]})


def strongest(fake_machine, tmp_path, levels, toml=TOML):
    question = Question(make_task(tmp_path, toml=toml), DatasetSettings(), tmp_path / "evidence")
    return at_strongest(fake_machine(isolation="auto"), question, levels)


@pytest.mark.parametrize("level", ["pristine", "masked", "fresh", "none"])
def test_the_strongest_that_passes(fake_machine, tmp_path, level):
    levels = Levels(**{level: ("expected", level)})
    result = strongest(fake_machine, tmp_path, levels)
    assert (result.reason, result.facts["isolation"]) == ("expected", level)
    weaker = levels.asked[:-1]
    assert result.facts["levels"] == {**dict.fromkeys(weaker, "wrong-reward"), level: "expected"}
    assert result.facts["trials"] == levels.asked == ["pristine", "masked", "fresh", "none"][: len(weaker) + 1]


def test_where_none_passes(fake_machine, tmp_path):
    result = strongest(fake_machine, tmp_path, Levels(fresh=("no-reward", "fresh")))
    assert (result.reason, result.facts["isolation"], len(result.facts["levels"])) == ("no-reward", "fresh", 4)


def test_no_answer_at_a_level(fake_machine, tmp_path):
    levels = Levels(masked=("host-disk-full", "masked"), fresh=("expected", "fresh"))
    assert strongest(fake_machine, tmp_path, levels).reason == "host-disk-full"
    assert levels.asked == ["pristine", "masked"]


def test_a_solution_that_passes_in_one_container_only(fake_machine, tmp_path):
    """Its services have to live on: no level is reached by that, and one that is comes first."""
    alone = dict.fromkeys(("pristine", "masked", "fresh"), ("expected", "none"))
    result = strongest(fake_machine, tmp_path, Levels(**{**alone, "fresh": ("expected", "fresh")}))
    assert result.facts["isolation"] == "fresh"
    assert result.facts["levels"] == {"pristine": "other-scope", "masked": "other-scope", "fresh": "expected"}
    result = strongest(fake_machine, tmp_path, Levels(**alone))
    assert (result.reason, result.facts["isolation"]) == ("expected", "none")


@pytest.mark.parametrize("more", [SEPARATE, TOML + '[metadata.otval]\nprocess_scope = "trial"\n'])
def test_one_way_only(fake_machine, tmp_path, more):
    levels = Levels(fresh=("expected", "none"))
    assert strongest(fake_machine, tmp_path, levels, more).reason == "expected"
    assert levels.asked == ["fresh"]


@pytest.mark.parametrize(("reward", "verdict"), [("0", "wrong-reward"), ("1", "wrong-reward")])
def test_both_have_to_pass(fake_machine, tmp_path, reward, verdict):
    """A verifier that pays always, or never."""
    question = Question(make_task(tmp_path), DatasetSettings(), tmp_path / "evidence")
    image = write_squashfs(tmp_path / "image.sqfs", {"/etc/hostname": ""})
    machine = fake_machine(writes_reward(reward), FakeImages(files=(image,)), isolation="auto")
    result, _ = ask("oracle", machine, question)
    assert (result.reason, result.headline.startswith("noop: ")) == (verdict, reward == "1")
    assert list(result.facts["levels"]) == ["pristine", "masked", "fresh", "none"]


@pytest.mark.parametrize("scope", ["trail", 3, []])
def test_a_scope_that_there_is_not(isolation, scope):
    result, _ = isolation(toml=TOML + f"[metadata.otval]\nprocess_scope = {scope!r}\n")
    assert (result.reason, "phase or trial" in result.headline) == ("bad-task", True)


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
