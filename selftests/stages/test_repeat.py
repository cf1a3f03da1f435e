"""Attempts of one item, and what they add up to."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.core import Conclusion
from pytest_otval.ledger import Ledger, Line
from pytest_otval.stages.earlier import Earlier, EarlierAttempts
from pytest_otval.stages.question import Question
from pytest_otval.stages.repeat import ask_repeated, interval
from pytest_otval.stages.spec import STAGES, Stage
from pytest_otval.task.dataset import DatasetSettings
from selftests.fakes import Answer, make_task

ORACLE = next(stage for stage in STAGES if stage.name == "oracle")
NONE = Earlier({})


@pytest.fixture
def grading(fake_machine, tmp_path):
    """Make a machine whose verifier gives these rewards one after the other; a word is how test.sh ended."""

    def make(*rewards, **verdict):
        def script(container, command):
            if command.argv[-1] != "/tests/test.sh":
                return None
            reward = rewards[len(seen) % len(rewards)]
            seen.append(reward)
            if isinstance(reward, str):
                return Answer(reward, None)
            (container.bound("/logs/verifier") / "reward.txt").write_text(str(reward))
            return Answer(output=f"trial {len(seen) - 1} says {reward}\n".encode())

        seen = []
        return fake_machine(script, **verdict), Question(make_task(tmp_path), DatasetSettings(), tmp_path / "evidence")

    return make


def repeat(grading, count, *rewards, earlier=NONE):
    machine, question = grading(*rewards)
    return ask_repeated(ORACLE, machine, question, count, earlier)[0]


def trials(result):
    return [(trial["number"], trial["attempt"], trial["class"], trial["score"]) for trial in result.facts["trials"]]


def test_all_pass(grading):
    result = repeat(grading, 3, 1)
    assert (result.reason, result.headline, result.log) == ("expected", "", "")
    assert result.facts["attempts"] == {"passed": 3, "count": 3, "low": 0.4644, "high": 1.0}
    assert trials(result) == [(0, 0, "expected", 1.0), (1, 1, "expected", 1.0), (2, 2, "expected", 1.0)]
    assert result.facts["score"] == 1.0


def test_some_pass(grading):
    result = repeat(grading, 10, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1)
    assert result.reason == "flaky"
    assert result.headline == (
        "7/10 attempts gave the expected answer, 70 % (95 % interval 39-91 %); "
        "the others: wrong-reward x 3 (attempts 2, 5, 8)"
    )
    assert result.log == "trial 2 says 0", "the log of the first that failed"
    assert result.facts["score"] == 0.0
    assert result.facts["attempts"] == {"passed": 7, "count": 10, "low": 0.3942, "high": 0.9073}


def test_many_failures_are_named_in_part(grading):
    assert repeat(grading, 8, 1, 0, 0, 0, 0, 0, 0, 0).headline.endswith("x 7 (attempts 1, 2, 3, 4, 5, ...)")


def test_failures_of_several_kinds(grading):
    result = repeat(grading, 4, 1, "timeout", 0, 0)
    assert result.headline.endswith("the others: wrong-reward x 2 (attempts 2, 3), verifier-timeout x 1 (attempt 1)")
    assert result.log == "trial 2 says 0", "the most frequent kind is shown"
    result = repeat(grading, 3, "timeout", 0, 0)
    assert result.reason == "wrong-reward"
    assert result.headline == (
        "no attempt of 3 gave the expected answer: wrong-reward x 2 (attempts 1, 2), verifier-timeout x 1 (attempt 0)"
    )
    assert result.facts["attempts"]["passed"] == 0


def test_one_failure_in_all_attempts(grading):
    result = repeat(grading, 3, 0)
    assert result.reason == "wrong-reward"
    assert result.headline == "oracle scored 0, at least 1 was expected; the same in all 3 attempts"


def test_seconds_add_up(grading, monkeypatch):
    result = repeat(grading, 3, 1)
    parts = [trial["seconds"] for trial in result.facts["trials"]]
    for phase in ("setup", "agent", "verifier", "total"):
        assert result.facts["seconds"][phase] == pytest.approx(sum(part[phase] for part in parts), abs=1e-3)


def test_evidence_of_each_attempt_has_its_folder(grading):
    machine, question = grading(1)
    ask_repeated(ORACLE, machine, question, 3, NONE)
    assert sorted(path.name for path in question.evidence.iterdir()) == ["attempt-0", "attempt-1", "attempt-2"]
    assert "trial 1 says 1" in (question.evidence / "attempt-1/verifier/test-stdout.txt").read_text()


def test_each_attempt_is_kept_as_it_ends(grading):
    def keep(result, evidence):
        ended = (evidence / "verifier/test-stdout.txt").read_text()
        kept.append((result.reason, trials(result), evidence.name, ended))
        return f"place of {evidence.name}"

    kept = []
    machine, question = grading(1, 0)
    result, _ = ask_repeated(ORACLE, machine, question, 2, NONE, keep)
    assert kept == [
        ("expected", [(0, 0, "expected", 1.0)], "attempt-0", "trial 0 says 1\n"),
        ("wrong-reward", [(1, 1, "wrong-reward", 0.0)], "attempt-1", "trial 1 says 0\n"),
    ]
    assert result.facts["evidence"] == "place of attempt-1", "of the attempt that is shown"


def test_an_error_ends_the_item_and_keeps_what_came_before(grading):
    machine, question = grading(1, 1, "killed", "killed", "killed")
    result, retries = ask_repeated(ORACLE, machine, question, 5, NONE)
    assert (result.reason, retries) == ("killed", 2)
    assert trials(result)[:2] == [(0, 0, "expected", 1.0), (1, 1, "expected", 1.0)]
    assert result.facts["image"]["key"] == "0" * 64, "which the lines of the trials before take"
    assert "attempts" not in result.facts


def test_an_attempt_is_retried_by_itself(grading):
    machine, question = grading(1, "killed", 1, 1)
    result, retries = ask_repeated(ORACLE, machine, question, 3, NONE)
    assert (result.reason, retries) == ("expected", 1)
    assert [trial[:2] for trial in trials(result)] == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize("reason", ["compose", "image-failed", "bad-task", "needs-network"])
def test_what_is_no_answer_of_an_attempt_is_not_asked_again(monkeypatch, tmp_path, reason):
    def answer(machine, question):
        calls.append(question.attempt)
        raise Conclusion(reason, "headline")

    calls = []
    monkeypatch.setattr(f"{__name__}.answer", answer, raising=False)
    question = Question(make_task(tmp_path), DatasetSettings(), tmp_path / "evidence")
    result, _ = ask_repeated(Stage("own", f"{__name__}:answer", "?"), None, question, 4, NONE)
    assert (result.reason, calls, result.facts["trials"]) == (reason, [0], [])


def test_a_stage_without_trials_gets_one_an_attempt(monkeypatch, tmp_path):
    from pytest_otval.core import StageResult

    def answer(machine, question):
        return StageResult("expected" if question.attempt else "wrong-reward", "why", facts={"seconds": {"total": 2.0}})

    monkeypatch.setattr(f"{__name__}.answer", answer, raising=False)
    question = Question(make_task(tmp_path), DatasetSettings(), tmp_path / "evidence")
    result, _ = ask_repeated(Stage("own", f"{__name__}:answer", "?"), None, question, 2, NONE)
    assert result.reason == "flaky"
    assert [(trial["agent"], trial["class"]) for trial in result.facts["trials"]] == [
        ("own", "wrong-reward"),
        ("own", "expected"),
    ]
    assert result.facts["seconds"] == {"total": 4.0}


def test_both_trials_of_a_service_are_one_attempt(fake_machine, tmp_path):
    def script(container, command):
        if command.argv[-1] == "/solution/solve.sh":
            return Answer(left_alive=1)
        if command.argv[-1] == "/tests/test.sh":
            together = any(bind.target == "/solution" for bind in container.spec.binds)
            (container.bound("/logs/verifier") / "reward.txt").write_text(str(int(together)))
        return None

    question = Question(make_task(tmp_path), DatasetSettings(), tmp_path / "evidence")
    result, _ = ask_repeated(ORACLE, fake_machine(script), question, 2, NONE)
    assert result.reason == "expected"
    assert [trial[:3] for trial in trials(result)] == [
        (0, 0, "wrong-reward"),
        (1, 0, "expected"),
        (2, 1, "wrong-reward"),
        (3, 1, "expected"),
    ]


# --- what earlier runs left -------------------------------------------------------------------------------------------

ID = "datasets/set/tasks/task/task.toml::oracle"
IMAGE = {"key": "0" * 64, "content": "1" * 64, "base": "b"}


def trial_line(number=0, attempt=None, reason="expected", **fields):
    values = {
        "kind": "trial",
        "id": f"{ID}#oracle/{number}",
        "task_digest": "t",
        "stage": "oracle",
        "attempt": number if attempt is None else attempt,
        "verdict": {"expected": "pass", "killed": "error"}.get(reason, "fail"),
        "reason": reason,
        "settings_digest": "s",
        "flavour": "",
        "network": "task",
        "score": float(reason == "expected"),
        "image": IMAGE,
        "scope": "phase",
        "isolation": "shared",
        "headline": f"headline of {number}",
    }
    return Line(**{**values, **fields})


def found(tmp_path, *lines, writer="main"):
    ledger = Ledger(tmp_path, writer)
    for line in lines:
        ledger.write(line)
    ledger.close()
    return EarlierAttempts(tmp_path, "s").of(ID, "t", "")


def test_earlier_attempts_count(grading, tmp_path):
    earlier = found(tmp_path, trial_line(0), trial_line(1, reason="wrong-reward"), trial_line(2))
    machine, question = grading(1)
    result, _ = ask_repeated(ORACLE, machine, question, 5, earlier)
    assert result.headline.startswith("4/5 attempts gave the expected answer")
    assert trials(result) == [(3, 3, "expected", 1.0), (4, 4, "expected", 1.0)], "only what is missing is run"


def test_when_enough_are_known_none_is_run(grading, tmp_path):
    earlier = found(tmp_path, *map(trial_line, range(5)))
    machine, question = grading(0)
    result, _ = ask_repeated(ORACLE, machine, question, 3, earlier)
    assert (result.reason, result.facts["attempts"]["count"], result.facts["trials"]) == ("expected", 5, [])
    assert (result.facts["image"], result.facts["score"]) == (IMAGE, 1.0)
    assert machine.sandbox.containers == []


def test_an_attempt_that_ended_in_an_error_is_made_up_for(grading, tmp_path):
    earlier = found(tmp_path, trial_line(0), trial_line(1, reason="killed"), trial_line(2))
    machine, question = grading(1)
    result, _ = ask_repeated(ORACLE, machine, question, 3, earlier)
    assert trials(result) == [(3, 1, "expected", 1.0)], "attempt 1, under a key that is not taken"
    assert result.facts["attempts"]["count"] == 3


@pytest.mark.parametrize(
    "other",
    [{"task_digest": "other"}, {"settings_digest": "other"}, {"id": ID.replace("oracle", "noop") + "#noop/0"}],
)
def test_attempts_at_something_else_do_not_count(tmp_path, other):
    earlier = found(tmp_path, trial_line(7, **other), trial_line(1))
    assert list(earlier.attempts) == [1]
    assert earlier.next_number == (2 if "id" in other else 8)


def test_attempts_over_another_image_do_not_count(grading, tmp_path):
    earlier = found(tmp_path, trial_line(0, image={**IMAGE, "key": "other"}), trial_line(1))
    machine, question = grading(1)
    result, _ = ask_repeated(ORACLE, machine, question, 2, earlier)
    assert trials(result) == [(2, 0, "expected", 1.0)]


def test_an_image_that_cannot_be_told_is_the_answer(grading, tmp_path, monkeypatch):
    def plan(request):
        raise Conclusion("network-unreachable", "no registry")

    machine, question = grading(1)
    monkeypatch.setattr(machine.images, "plan", plan, raising=False)
    result, _ = ask_repeated(ORACLE, machine, question, 2, found(tmp_path, trial_line(0)))
    assert (result.reason, result.headline) == ("network-unreachable", "no registry")


def test_the_latest_line_of_an_attempt_counts_whoever_wrote_it(tmp_path):
    found(tmp_path, trial_line(0, reason="wrong-reward", time="2026-01-02T00:00:00"), writer="a")
    earlier = found(tmp_path, trial_line(0, time="2026-01-01T00:00:00"), writer="b")
    assert earlier.attempts[0]["class"] == "wrong-reward"


def test_of_two_trials_of_an_attempt_the_second_counts(tmp_path):
    same = "2026-01-01T00:00:00"
    lines = trial_line(0, time=same, reason="wrong-reward"), trial_line(1, attempt=0, time=same)
    earlier = found(tmp_path, *lines)
    assert (earlier.attempts[0]["class"], earlier.next_number) == ("expected", 2)


def test_a_ledger_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path):
    found(tmp_path, trial_line(0), trial_line(1))
    path = tmp_path / "ledger" / "main.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    path.with_name("other.jsonl").write_text('{"v": 1, "kind": "trial"\n"trial"\n[1]\n' + json.dumps({"kind": "trial"}))
    assert list(EarlierAttempts(tmp_path, "s").of(ID, "t", "").attempts) == [0]


def test_no_ledger_is_no_attempt(tmp_path):
    assert EarlierAttempts(tmp_path, "s").of(ID, "t", "") == NONE


# --- the interval -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("passed", "count", "low", "high"),
    # From the table of Jeffreys limits in Brown, Cai, DasGupta (2001).
    [(0, 7, 0, 0.292), (1, 7, 0.016, 0.501), (2, 7, 0.065, 0.648), (3, 7, 0.139, 0.766), (0, 10, 0, 0.217)],
)
def test_interval_of_the_paper(passed, count, low, high):
    assert interval(passed, count) == pytest.approx((low, high), abs=6e-4)


@given(st.integers(1, 500).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count))))
def test_interval_holds_the_rate_and_mirrors(counts):
    passed, count = counts
    low, high = interval(passed, count)
    assert 0 <= low <= passed / count <= high <= 1
    assert interval(count - passed, count) == pytest.approx((1 - high, 1 - low))


def test_an_attempt_knows_its_number(monkeypatch, tmp_path):
    def answer(machine, question):
        seen.append((question.attempt, question.evidence.name))
        raise Conclusion("wrong-reward", "x")

    seen = []
    monkeypatch.setattr(f"{__name__}.answer", answer, raising=False)
    question = Question(make_task(tmp_path), DatasetSettings(), tmp_path / "evidence")
    stage = replace(ORACLE, answer=f"{__name__}:answer")
    ask_repeated(stage, None, question, 2, NONE)
    assert seen == [(0, "attempt-0"), (1, "attempt-1")]
