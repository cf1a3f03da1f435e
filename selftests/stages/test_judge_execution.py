"""What a trial shows of what a judge claims, over a fake sandbox; each script decides how the verifier answers."""

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.judge.model import Criterion, Judgement, Opinion
from pytest_otval.sandbox.base import UPPER
from pytest_otval.stages.judge_execution import Executions
from pytest_otval.stages.question import Question
from pytest_otval.task.dataset import DatasetSettings
from selftests.fakes import TOML, Answer, FakeImages, make_task

WRONG = Criterion("weak_test", "?", blocking=True, execution="wrong-solution")
RIGHT = Criterion("brittle_test", "?", blocking=True, execution="right-solution")
STEPS = TOML + '[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n'
RUN = "/.otval-attack/run.sh"


def claim(criterion, candidate="echo 0 >/app/answer", outcome="fail", standing="stands"):
    opinion = Opinion(criterion.id, outcome, candidate=candidate)
    return Judgement(criterion.id, outcome, (outcome,), opinion, standing)


def verifier(candidate="1", reference="1", status=0, ended="exit", leaves="answer"):
    """A script: the rewards of the two agents' work, and how the candidate's own script ends, and what it leaves."""
    acted = []

    def script(container, command):
        name = command.argv[-1]
        if name in (RUN, "/solution/solve.sh"):
            acted.append(name)
            left = container.spec.overlay / UPPER / "app" / (leaves if name == RUN else "answer")
            left.parent.mkdir(parents=True)
            left.touch()
            return Answer(ended, status if ended == "exit" else None) if name == RUN else None
        reward = candidate if acted[-1:] == [RUN] else reference
        if name == "/tests/test.sh" and reward is not None:
            (container.bound("/logs/verifier") / "reward.txt").write_text(reward)
        return None

    return script


@pytest.fixture
def decide(fake_machine, tmp_path):
    """Decide a claim; return the judgement, the executions and the machine."""

    def made(criterion, script, judgement=None, task=None, images=None, **verdict):
        machine = fake_machine(script, images, **{"flavour": "fakeroot-subuid", **verdict})
        question = Question(task or make_task(tmp_path), DatasetSettings(), tmp_path / "evidence")
        executions = Executions(machine, question)
        return executions.decide(criterion, judgement or claim(criterion)), executions, machine

    return made


@pytest.mark.parametrize(
    ("criterion", "script", "standing", "words"),
    [
        (WRONG, verifier("1"), "executed", "the candidate is paid: score 1"),
        (WRONG, verifier("0"), "disproved", "scored 0, at least 1 was expected"),
        (WRONG, verifier("0.5"), "disproved", "scored 0.5"),
        (WRONG, verifier(None), "disproved", "is not paid"),
        (WRONG, verifier("1", status=3), "executed", "score 1"),
        (WRONG, verifier("1", ended="killed"), "advisory", "killed"),
        (RIGHT, verifier("1"), "disproved", "the candidate is paid: score 1"),
        (RIGHT, verifier("0"), "executed", "scored 0, at least 1 was expected"),
        (RIGHT, verifier("0", status=3), "advisory", "by its own fault"),
        (RIGHT, verifier(None), "advisory", "by its own fault"),
        (RIGHT, verifier("0", ended="timeout"), "advisory", "by its own fault"),
        (RIGHT, verifier("0", reference="0"), "advisory", "neither is the reference solution"),
        (RIGHT, verifier("0", leaves="other"), "advisory", "no file that the reference solution changes"),
    ],
)
def test_the_trial_decides(decide, criterion, script, standing, words):
    found, executions, _ = decide(criterion, script)
    assert (found.standing, words in found.why) == (standing, True), found
    agents = [trial["agent"] for trial in executions.trials]
    assert agents[0] == f"candidate-0-{criterion.id}"
    assert ("oracle" in agents) == ("reference" in words or (criterion, standing) == (RIGHT, "executed"))


@pytest.mark.parametrize(
    ("criterion", "judgement"),
    [
        (Criterion("plain", "?", blocking=True), None),
        (WRONG, claim(WRONG, outcome="pass", standing=None)),
        (WRONG, claim(WRONG, standing="refuted")),
        (WRONG, claim(WRONG, standing="split")),
    ],
)
def test_what_needs_no_trial_gets_none(decide, criterion, judgement):
    judgement = judgement or claim(criterion)
    found, executions, machine = decide(criterion, verifier(), judgement)
    assert (found, executions.trials, machine.sandbox.containers) == (judgement, [], [])


def test_without_a_candidate(decide):
    found, executions, _ = decide(WRONG, verifier(), claim(WRONG, " \n"))
    assert (found.standing, found.why, executions.trials) == ("advisory", "there is no candidate to be run", [])


def test_a_candidate_that_is_the_reference_solution(decide, tmp_path):
    task = make_task(tmp_path, solve="echo 1  >/app/answer")
    candidate = "#!/bin/bash\n# to be sure\necho 1 >/app/answer\n"
    found, executions, _ = decide(WRONG, verifier(), claim(WRONG, candidate), task)
    assert (found.standing, executions.trials) == ("advisory", [])


def test_without_containers(decide):
    found, _, machine = decide(WRONG, verifier(), flavour="")
    assert (found.standing, machine.sandbox.containers) == ("advisory", [])


def test_a_task_of_several_steps(decide, tmp_path):
    files = {f"steps/{name}/instruction.md": "x" for name in ("one", "two")}
    task = make_task(tmp_path, toml=STEPS, files=files)
    assert decide(WRONG, verifier(), task=task)[0].standing == "advisory"


def test_an_image_that_is_not_to_be_had(decide):
    images = FakeImages(fault=lambda request: Conclusion("base-unavailable", "no registry"))
    found, _, _ = decide(WRONG, verifier(), images=images)
    assert (found.standing, "base-unavailable" in found.why) == ("advisory", True)


def test_without_a_reference_solution_nothing_shows_that_anything_is_paid(decide, tmp_path):
    found, _, _ = decide(RIGHT, verifier("0"), task=make_task(tmp_path, solve=None))
    assert (found.standing, "no-solution" in found.why) == ("advisory", True)


def test_a_candidate_is_run_as_a_solution_is(decide):
    script = "#!/bin/bash\necho '\ud800' \x00"
    _, _, machine = decide(WRONG, verifier(), claim(WRONG, script))
    (command,) = [command for command in machine.sandbox.commands if command.argv[-1] == RUN]
    assert command.seconds == 30.0
    agent = next(one for one in machine.sandbox.containers if command in one.commands)
    assert {bind.target for bind in agent.spec.binds} == {"/logs/agent", "/.otval-attack"}


def test_the_reference_is_tried_once(decide):
    script = verifier("0")
    _, executions, _ = decide(RIGHT, script)
    executions.decide(RIGHT, claim(RIGHT))
    assert [trial["agent"] for trial in executions.trials] == [
        *("candidate-0-brittle_test", "oracle", "candidate-2-brittle_test")
    ]
