import pkgutil
import sys

import pytest

from pytest_otval.core import REASONS, Conclusion, StageResult, Verdict
from pytest_otval.stages.registry import RETRIES
from pytest_otval.stages.registry import ask as ask_stage
from pytest_otval.stages.spec import STAGES, Stage

ERRORS = [name for name, reason in REASONS.items() if reason.verdict is Verdict.ERROR]
FINAL = ["missing-tool", "runtime-missing", "internal"]


@pytest.fixture
def stage(monkeypatch):
    """Make a stage that gives these reasons one after the other, raised or returned, and count its calls."""

    def make(*reasons, raises=True):
        def answer(machine, question):
            reason = reasons[min(len(calls), len(reasons) - 1)]
            calls.append(reason)
            if raises and reason != "expected":
                raise Conclusion(reason, "headline", "log")
            return StageResult(reason)

        calls = []
        monkeypatch.setattr(sys.modules[__name__], "answer", answer, raising=False)
        return calls

    return make


def ask(name, machine, question):
    return ask_stage(Stage(name, f"{__name__}:answer", "?"), machine, question)


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_each_of_our_stages_has_its_answer(stage):
    assert callable(pkgutil.resolve_name(stage.answer))


@pytest.mark.parametrize("reason", [name for name in REASONS if name not in ERRORS])
@pytest.mark.parametrize("raises", [True, False])
def test_answers_about_the_task_are_final(stage, reason, raises):
    calls = stage(reason, raises=raises)
    result, retries = ask("oracle", None, None)
    assert (result.reason, retries, len(calls)) == (reason, 0, 1)


@pytest.mark.parametrize("reason", [name for name in ERRORS if name not in FINAL])
@pytest.mark.parametrize("raises", [True, False])
def test_errors_are_asked_again(stage, reason, raises):
    calls = stage(reason, raises=raises)
    result, retries = ask("oracle", None, None)
    assert (result.reason, retries, len(calls)) == (reason, RETRIES, RETRIES + 1)


@pytest.mark.parametrize("reason", FINAL)
def test_errors_that_stay_are_not_asked_again(stage, reason):
    calls = stage(reason, "expected")
    result, retries = ask("oracle", None, None)
    assert (result.reason, retries, len(calls)) == (reason, 0, 1)


def test_a_later_answer_counts(stage):
    stage("no-start", "killed", "expected")
    result, retries = ask("oracle", None, None)
    assert (result.reason, retries) == ("expected", 2)
    stage("killed", "wrong-reward", "expected")
    result, retries = ask("oracle", None, None)
    assert (result.reason, retries) == ("wrong-reward", 1)


def test_conclusion_keeps_its_words(stage):
    stage("bad-task")
    result, _ = ask("oracle", None, None)
    assert (result.headline, result.log) == ("headline", "log")
