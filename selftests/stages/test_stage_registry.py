import pkgutil
import sys
from types import SimpleNamespace

import pytest

from pytest_otval.core import REASONS, Conclusion, StageResult, Verdict
from pytest_otval.stages.registry import RETRIES
from pytest_otval.stages.registry import ask as ask_stage
from pytest_otval.stages.spec import EVERY_STAGE, Stage

ERRORS = [name for name, reason in REASONS.items() if reason.verdict is Verdict.ERROR]
FINAL = ["missing-tool", "runtime-missing", "endpoint-failed", "budget-spent", "judge-unreadable", "internal"]


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


@pytest.fixture(autouse=True)
def slept(monkeypatch):
    """The pauses between tries, which nobody waits for."""
    pauses = []
    monkeypatch.setattr("pytest_otval.stages.registry.time.sleep", pauses.append)
    return pauses


@pytest.fixture
def ask(tmp_path):
    """Ask a stage of which nothing but its answer is known."""
    question = SimpleNamespace(evidence=tmp_path / "evidence")
    return lambda: ask_stage(Stage("oracle", f"{__name__}:answer", "?"), None, question)


@pytest.mark.parametrize("stage", EVERY_STAGE, ids=lambda stage: stage.name)
def test_each_of_our_stages_has_its_answer(stage):
    assert callable(pkgutil.resolve_name(stage.answer))


@pytest.mark.parametrize("reason", [name for name in REASONS if name not in ERRORS])
@pytest.mark.parametrize("raises", [True, False])
def test_answers_about_the_task_are_final(stage, ask, reason, raises):
    calls = stage(reason, raises=raises)
    result, retries = ask()
    assert (result.reason, retries, len(calls)) == (reason, 0, 1)


@pytest.mark.parametrize("reason", [name for name in ERRORS if name not in FINAL])
@pytest.mark.parametrize("raises", [True, False])
def test_errors_are_asked_again(stage, ask, reason, raises):
    calls = stage(reason, raises=raises)
    result, retries = ask()
    assert (result.reason, retries, len(calls)) == (reason, RETRIES, RETRIES + 1)


@pytest.mark.parametrize("reason", FINAL)
def test_errors_that_stay_are_not_asked_again(stage, ask, reason):
    calls = stage(reason, "expected")
    result, retries = ask()
    assert (result.reason, retries, len(calls)) == (reason, 0, 1)


def test_a_later_answer_counts(stage, ask):
    stage("no-start", "killed", "expected")
    result, retries = ask()
    assert (result.reason, retries) == ("expected", 2)
    stage("killed", "wrong-reward", "expected")
    result, retries = ask()
    assert (result.reason, retries) == ("wrong-reward", 1)


def test_conclusion_keeps_its_words(stage, ask):
    stage("bad-task")
    result, _ = ask()
    assert (result.headline, result.log) == ("headline", "log")


def test_a_retry_waits_only_for_what_may_be_gone_in_a_moment(stage, ask, slept):
    for reason in ERRORS:
        slept.clear()
        stage(reason)
        ask()
        passing = reason in ("host-disk-full", "network-unreachable", "base-unavailable")
        assert slept == ([1.0, 3.0] if passing else []), reason


def test_evidence_is_that_of_the_last_try(monkeypatch, tmp_path):
    def answer(machine, question):
        question.evidence.mkdir()
        (question.evidence / f"try-{len(calls)}").touch()
        calls.append(reason := ("killed", "no-start", "expected")[len(calls)])
        return StageResult(reason)

    calls = []
    monkeypatch.setattr(sys.modules[__name__], "answer", answer, raising=False)
    ask_stage(Stage("oracle", f"{__name__}:answer", "?"), None, SimpleNamespace(evidence=tmp_path / "evidence"))
    assert [path.name for path in (tmp_path / "evidence").iterdir()] == ["try-2"]
