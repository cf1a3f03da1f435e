"""The verdict of a trial: by our rules, by Harbor's, and where the two part."""

import pytest

from pytest_otval.core import REASONS, Conclusion, Verdict
from pytest_otval.stages.trials import judge
from pytest_otval.task.dataset import DatasetSettings
from pytest_otval.trial.outcome import StepOutcome, TrialOutcome
from pytest_otval.trial.reward import RewardFault, RewardFiles

DEFAULT = DatasetSettings()
RULES = ("harbor", "default", "strict")


def step(value=None, name="", status=0, json=None):
    """A step whose verifier left one number, or a table."""
    rewards = json if json is not None else {"reward": value}
    return StepOutcome(name, RewardFiles(json, None if json is not None else rewards), rewards, status, 0)


def faulty(from_json=None, from_txt=None, name=""):
    """A step whose rewards our rules refuse."""
    return StepOutcome(name, RewardFiles(from_json, from_txt), None, 0, 0)


@pytest.fixture
def outcome(tmp_path):
    def make(*steps, agent="oracle", reason=None, headline="why", log=""):
        (tmp_path / "verifier").mkdir(exist_ok=True)
        (tmp_path / "verifier" / "test-stdout.txt").write_text("last words\n")
        conclusion = Conclusion(reason, headline, log) if reason else None
        side = "low" if agent == "oracle" else "high"
        return TrialOutcome(agent, "phase", tmp_path, list(steps), side, conclusion=conclusion)

    return make


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize(
    ("agent", "value", "settings", "passes"),
    [
        ("oracle", 1.0, DEFAULT, True),
        ("oracle", 0.999, DEFAULT, False),
        ("oracle", 0.0, DEFAULT, False),
        ("oracle", 0.8, DatasetSettings(oracle_min=0.8), True),
        ("noop", 0.0, DEFAULT, True),
        ("noop", 0.001, DEFAULT, False),
        ("noop", 1.0, DEFAULT, False),
        ("noop", 0.2, DatasetSettings(noop_max=0.2), True),
    ],
)
def test_thresholds(outcome, rules, agent, value, settings, passes):
    answer = judge(outcome(step(value), agent=agent), settings, rules, "mean")
    assert answer.reason == ("expected" if passes else "wrong-reward")
    assert answer.score == value
    assert answer.rewards == {"reward": value}
    assert answer.harbor == {"rewards": {"reward": value}, "error": "", "pass": passes}
    assert answer.stricter == ""
    assert answer.log == ("" if passes else "last words")
    if not passes:
        assert answer.headline.startswith(f"{agent} scored {value:g}, at ")


@pytest.mark.parametrize(
    ("agent", "expected"), [("oracle", "wrong-reward"), ("noop", "wrong-reward"), ("attack", "wrong-reward")]
)
def test_several_keys_are_taken_against_the_task(outcome, agent, expected):
    assert judge(outcome(step(json={"a": 0.0, "b": 1.0}), agent=agent), DEFAULT, "default", "mean").reason == expected


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("reason", [name for name, reason in REASONS.items() if reason.verdict is not Verdict.PASS])
def test_conclusion_before_any_reward(outcome, rules, reason):
    answer = judge(outcome(StepOutcome(""), reason=reason), DEFAULT, rules, "mean")
    assert (answer.reason, answer.headline, answer.stricter) == (reason, "why", "")
    if REASONS[reason].verdict is Verdict.FAIL:
        assert answer.harbor["pass"] is False and answer.harbor["error"]
        assert answer.log == "last words"
    else:
        assert answer.harbor is None


def test_conclusion_before_any_step(outcome):
    answer = judge(outcome(reason="setup-failed", log="own log"), DEFAULT, "default", "mean")
    assert (answer.reason, answer.log) == ("setup-failed", "own log")
    assert answer.harbor == {"rewards": None, "error": "setup-failed", "pass": False}


@pytest.mark.parametrize(
    ("reason", "error"), [("verifier-timeout", "VerifierTimeoutError"), ("agent-timeout", "AgentTimeoutError")]
)
def test_time_outs_have_harbors_names(outcome, reason, error):
    assert judge(outcome(StepOutcome(""), reason=reason), DEFAULT, "default", "mean").harbor["error"] == error


UNREADABLE = RewardFault("reward-unreadable", "reward.txt: 'x' is no number")
STRICTER = {
    "reward-conflict": faulty({"reward": 1.0}, {"reward": 0.0}),
    "reward-unreadable": faulty({"reward": 1.0}, UNREADABLE),
}


@pytest.mark.parametrize("reason", STRICTER)
@pytest.mark.parametrize("rules", RULES)
def test_rules_of_ours_that_make_a_difference(outcome, rules, reason):
    answer = judge(outcome(STRICTER[reason], reason=reason), DEFAULT, rules, "mean")
    assert answer.reason == ("expected" if rules == "harbor" else reason)
    assert answer.headline == ("" if rules == "harbor" else "why")
    assert answer.harbor["pass"] is True
    assert answer.stricter == reason


@pytest.mark.parametrize("rules", RULES)
def test_score_out_of_range_is_stricter_than_harbor(outcome, rules):
    answer = judge(outcome(step(2.0)), DEFAULT, rules, "mean")
    assert answer.reason == ("expected" if rules == "harbor" else "reward-out-of-range")
    assert (answer.rewards, answer.stricter) == ({"reward": 2.0}, "reward-out-of-range")


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize(
    ("files", "reason", "error"),
    [
        ((None, None), "no-reward", "RewardFileNotFoundError"),
        ((None, UNREADABLE), "reward-unreadable", "VerifierOutputParseError"),
        ((UNREADABLE, {"reward": 1.0}), "reward-unreadable", "VerifierOutputParseError"),
        ((None, RewardFault("reward-unreadable", "reward.txt: is empty")), "reward-unreadable", "RewardFileEmptyError"),
        ((None, RewardFault("reward-not-regular", "x")), "reward-not-regular", "RewardFileNotFoundError"),
    ],
)
def test_rewards_that_are_none_for_both(outcome, rules, files, reason, error):
    answer = judge(outcome(faulty(*files), reason=reason), DEFAULT, rules, "mean")
    assert answer.reason == reason
    assert (answer.harbor, answer.stricter) == ({"rewards": None, "error": error, "pass": False}, "")


@pytest.mark.parametrize("status", [1, 137, None])
@pytest.mark.parametrize("rules", RULES)
def test_status_of_the_solution_counts_under_strict_rules_only(outcome, rules, status):
    answer = judge(outcome(step(1.0, status=status)), DEFAULT, rules, "mean")
    assert answer.reason == ("solution-failed" if rules == "strict" else "expected")
    assert answer.stricter == ("solution-failed" if rules == "strict" else "")
    assert answer.score == 1.0


def test_status_of_an_agent_that_does_nothing_is_none(outcome):
    assert judge(outcome(step(0.0, status=None), agent="noop"), DEFAULT, "strict", "mean").reason == "expected"


@pytest.mark.parametrize(
    ("values", "strategy", "score"),
    [((1.0, 1.0), "mean", 1.0), ((1.0, 0.0), "mean", 0.5), ((0.0, 1.0), "final", 1.0), ((1.0, 0.0), "final", 0.0)],
)
def test_steps(outcome, values, strategy, score):
    answer = judge(outcome(*(step(value, f"s{value}") for value in values)), DEFAULT, "default", strategy)
    assert (answer.score, answer.reason) == (score, "expected" if score == 1 else "wrong-reward")
    assert answer.harbor["pass"] is (score == 1)


def test_harbor_takes_all_steps_together(outcome):
    """Our rules refuse the first step, Harbor's answer is about both."""
    conflict = faulty({"reward": 1.0}, {"reward": 0.0}, name="one")
    both = outcome(conflict, step(0.0, "two"), reason="reward-conflict")
    assert judge(both, DEFAULT, "harbor", "mean").reason == "reward-conflict"
    assert judge(both, DEFAULT, "default", "mean").harbor["rewards"] == {"reward": 0.5}


def test_a_step_that_did_not_end_is_no_reward_for_harbor(outcome):
    answer = judge(outcome(step(1.0, "one"), StepOutcome("two"), reason="verifier-timeout"), DEFAULT, "harbor", "final")
    assert (answer.reason, answer.harbor["pass"]) == ("verifier-timeout", False)


def test_deciding_key_is_missing(outcome):
    answer = judge(outcome(step(1.0)), DatasetSettings(reward_key="accuracy"), "default", "mean")
    assert (answer.reason, answer.harbor["pass"]) == ("reward-unreadable", False)
