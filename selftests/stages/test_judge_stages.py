"""judge_task and judge_trace over a fake sandbox and a scripted model: which answer reviews come to."""

import json
from dataclasses import replace

import pytest

from pytest_otval.core import OtvalUsageError, Verdict
from pytest_otval.judge.cache import VERSION
from pytest_otval.judge.calibration import Calibration
from pytest_otval.judge.model import Criterion, Review, Rubric
from pytest_otval.judge.tally import Tally
from pytest_otval.kept import Kept
from pytest_otval.llm.budget import Budget
from pytest_otval.llm.chat import BudgetSpentError, ContextOverflowError, EndpointError, Usage
from pytest_otval.profile import ModelSection
from pytest_otval.stages.attempted import AttemptLines
from pytest_otval.stages.judge_estimate import Estimate, estimate
from pytest_otval.stages.judging import CHARACTERS_A_TOKEN, MOST_CHARACTERS, characters_for
from pytest_otval.stages.question import Question
from pytest_otval.stages.registry import ask as ask_stage
from pytest_otval.stages.spec import JUDGE_TASK, JUDGE_TRACE
from pytest_otval.task.dataset import DatasetSettings
from selftests.fakes import make_task, writes_reward
from selftests.llm.scripted import ScriptedChat, said, texts
from selftests.report.ledgers import attempt
from selftests.report.talks import atif, run_of, step

FILES = {"instruction.md": "Write the sum to /app/answer.\n"}
TEST = "test -e /app/answer"
DIGEST = "sha256:t"
CRITERIA = {
    "instruction": (
        Criterion("weak", "?", blocking=True, execution="wrong-solution"),
        Criterion("clear", "?", blocking=True),
        Criterion("spelled", "?"),
    ),
    "trace": (Criterion("goal_reached", "?"), Criterion("environment_fault", "?", blocking=True)),
}
STANDS, REFUTED = (said(json.dumps({"verdict": one, "explanation": "so"})) for one in ("stands", "refuted"))


def fails(document, quote, candidate=""):
    evidence = [{"document": document, "quote": quote}]
    return {"outcome": "fail", "explanation": "it is\x1b wrong", "evidence": evidence, "candidate": candidate}


WEAK = fails("tests/test.sh", TEST, "touch /app/answer")
UNCLEAR = fails("instruction.md", "the sum")
MISSPELLED = fails("instruction.md", "Write")


def opinions(kind="instruction", **told):
    values = {one.id: {"outcome": "pass"} for one in CRITERIA[kind]} | told
    return said(json.dumps({"criteria": values}))


@pytest.fixture
def judge(fake_machine, tmp_path):
    """Ask a stage: its answer, the machine, and the chats that were made."""

    def ask(
        *says,
        stage=JUDGE_TASK,
        script=None,
        run=None,
        task=None,
        votes=1,
        context=None,
        budget=None,
        calibration=None,
        **verdict,
    ):
        machine = fake_machine(script or writes_reward("1"), **{"flavour": "fakeroot-subuid", **verdict})
        chats = []

        def chat(model, number):
            chats.append(ScriptedChat(says[len(chats) :], model))
            return chats[-1]

        machine.settings = replace(machine.settings, run=replace(machine.settings.run, judge="j", votes=votes))
        machine.chat, machine.chats = chat, chats
        machine.rubric = lambda kind: Rubric(kind, CRITERIA[kind])
        machine.calibration = lambda kind: calibration
        machine.model_section = lambda model: ModelSection(context=context)
        machine.budget = budget or Budget(tmp_path / "out")
        machine.judge_answers = Kept(tmp_path / "answers", VERSION)
        machine.attempts = AttemptLines(run or tmp_path / "out")
        task = task or make_task(tmp_path, test=TEST, files=FILES)
        question = Question(task, DatasetSettings(), tmp_path / "evidence", digest=DIGEST)
        result, retries = ask_stage(stage, machine, question)
        assert retries == 0
        return result, machine

    return ask


def standings(result, review=0):
    return {one["criterion"]: one["standing"] for one in result.facts["judge"][review]["judgements"]}


# --- judge_task ---


def test_a_task_without_a_fault(judge):
    result, machine = judge(opinions())
    assert (result.reason, result.headline) == ("expected", "3 pass")
    (review,) = result.facts["judge"]
    found = Review.from_dict(json.loads(json.dumps(review, allow_nan=False)))
    assert (found.kind, found.subject, found.model, found.spending.answers) == ("instruction", "", "j", 1)
    assert (result.facts["trials"], len(machine.chats)) == ([], 1)
    assert result.facts["seconds"]["total"] > 0
    told = "\n".join(texts(machine.chats[0].asked))
    assert TEST in told and FILES["instruction.md"].strip() in told


def test_a_fault_that_blocks(judge):
    result, _ = judge(opinions(clear=UNCLEAR, spelled=MISSPELLED), STANDS, STANDS)
    assert (result.reason, result.verdict) == ("judged-faulty", Verdict.FAIL)
    assert result.headline == "clear: instruction.md:1: it is\\x1b wrong"
    assert result.log.splitlines() == ["  instruction.md:1: the sum", "clear (stands): it is\\x1b wrong"]
    assert standings(result) == {"weak": None, "clear": "stands", "spelled": "advisory"}


@pytest.mark.parametrize(
    ("says", "standing"),
    [
        ((opinions(clear=UNCLEAR), REFUTED), "refuted"),
        ((opinions(clear=UNCLEAR), said("I am not sure")), "refuted"),
        ((opinions(clear=fails("instruction.md", "never said")),) * 2, None),
    ],
)
def test_what_decides_nothing(judge, says, standing):
    result, _ = judge(*says)
    assert (result.reason, standings(result)["clear"]) == ("expected", standing)


@pytest.mark.parametrize(
    ("reward", "standing", "reason"), [("1", "executed", "judged-faulty"), ("0", "disproved", "expected")]
)
def test_a_trial_decides_about_a_weak_test(judge, reward, standing, reason):
    result, _ = judge(opinions(weak=WEAK), STANDS, script=writes_reward(reward))
    assert (result.reason, standings(result)["weak"]) == (reason, standing)
    (trial,) = result.facts["trials"]
    assert trial["agent"] == "candidate-0-weak"
    assert ("the candidate is paid" in result.log) == (reason == "judged-faulty")


def test_a_claim_that_no_trial_shows_fails_nothing(judge):
    result, machine = judge(opinions(weak=WEAK), STANDS, flavour="")
    assert (result.reason, standings(result)["weak"], machine.sandbox.containers) == ("expected", "advisory", [])


def calibrated(*tallies):
    endpoint = {"model": "j", "endpoint": "http://127.0.0.1:1/v1", "time": "2026-01-02T03:04:05+00:00"}
    about = {"kind": "instruction", "rubric": "r", "votes": 1, "floor": 0.7}
    return Calibration(**endpoint, **about, untouched=9, alarmed=0, seeded=9, unreadable=0, tallies=tallies)


def measured(result):
    return {one["criterion"]: one["measured"] for one in result.facts["judge"][0]["judgements"]}


def test_a_criterion_below_the_floor_of_a_calibration_is_advice(judge):
    loud = calibrated(Tally("clear", found=9, raised=9))
    result, _ = judge(opinions(clear=UNCLEAR), STANDS, calibration=loud)
    assert (result.reason, standings(result)["clear"]) == ("expected", "advisory")
    who = "(j at http://127.0.0.1:1/v1, 2026-01-02)"
    counts = "precision 0.50 (9/18, 0.29-0.71), recall 1.00 (9/9, 0.70-1.00)"
    assert measured(result)["clear"] == f"{counts}; below 0.7, so it decides nothing {who}"
    assert measured(result)["spelled"] == ""


def test_what_a_trial_shows_needs_no_calibration(judge):
    loud = calibrated(Tally("weak", found=9, raised=9))
    result, _ = judge(opinions(weak=WEAK), STANDS, script=writes_reward("1"), calibration=loud)
    assert (result.reason, standings(result)["weak"]) == ("judged-faulty", "executed")


def test_what_was_not_measured_is_said_and_blocks_as_the_rubric_has_it(judge):
    for calibration in (None, calibrated(Tally("clear", raised=9))):
        result, _ = judge(opinions(clear=UNCLEAR), STANDS, calibration=calibration)
        assert (result.reason, measured(result)["clear"]) == ("judged-faulty", "not measured with a model")


def test_votes(judge):
    differing = (opinions(clear=UNCLEAR), opinions())
    result, machine = judge(*differing, opinions(), votes=3)
    assert (result.reason, len(machine.chats)) == ("expected", 3)
    result, _ = judge(*differing, votes=2)
    assert standings(result)["clear"] == "split"


def test_the_same_question_again_asks_nobody(judge):
    first, _ = judge(opinions(clear=UNCLEAR), STANDS)
    again, machine = judge(EndpointError("nobody is there"), EndpointError("nobody is there"))
    assert [chat.asked for chat in machine.chats] == [[], []]
    assert (again.reason, again.headline, again.log) == (first.reason, first.headline, first.log)
    assert again.facts["judge"][0]["spending"] == {
        "answers": 2,
        "cached": 2,
        "prompt": 0,
        "completion": 0,
        "usd": None,
    }


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (EndpointError("it is dead"), "endpoint-failed"),
        (ContextOverflowError("too long"), "endpoint-failed"),
        (BudgetSpentError("spent"), "budget-spent"),
        (said("I will not"), "judge-unreadable"),
    ],
)
def test_errors(judge, error, reason):
    result, _ = judge(error)
    assert (result.reason, result.verdict) == (reason, Verdict.ERROR)
    if isinstance(error, ContextOverflowError):
        assert "context = TOKENS" in result.headline


def test_a_budget_that_is_spent_before(judge, tmp_path):
    budget = Budget(tmp_path / "run", tokens=10)
    budget.spend("m", Usage(10, 1))
    result, machine = judge(opinions(), budget=budget)
    assert (result.reason, machine.chats) == ("budget-spent", [])


def test_a_task_that_cannot_be_read(judge, tmp_path):
    result, machine = judge(opinions(), task=make_task(tmp_path, toml="= x"))
    assert (result.reason, machine.chats) == ("bad-task", [])


def test_what_a_model_can_be_shown():
    rubric = Rubric("instruction", CRITERIA["instruction"], "r.toml")
    assert characters_for(rubric, ModelSection()) == MOST_CHARACTERS
    assert characters_for(rubric, ModelSection(context=1_000_000)) == MOST_CHARACTERS
    some, more = (characters_for(rubric, ModelSection(context=tokens)) for tokens in (32_000, 33_000))
    assert more - some == 1000 * CHARACTERS_A_TOKEN
    with pytest.raises(OtvalUsageError, match=r"4096 tokens is too short for r\.toml"):
        characters_for(rubric, ModelSection(context=4096))


def test_a_context_that_is_too_short(judge):
    result, _ = judge(opinions(), context=4096)
    assert (result.reason, "too short" in result.headline) == ("endpoint-failed", True)


# --- judge_trace ---


def talk_of(number):
    calls = [("ls /tests", f"no {number}")]
    return {"agent/trajectory.json": atif(step(1, "user", "do it"), step(2, message="look", calls=calls))}


BROKEN = fails("step 2", "ls /tests")


@pytest.fixture
def run(tmp_path):
    """Write a run whose attempts have these outcomes, each with a trajectory."""

    def made(outcomes, talk=None, **told):
        pairs = []
        for number, outcome in enumerate(outcomes):
            line = attempt(outcome, "task", number=number, task_digest=DIGEST, **told)
            files = talk_of(number) if talk is None else talk
            pairs.append((replace(line, id=line.id.replace("/demo/", "/set/")), files))
        return run_of(tmp_path, *pairs)

    return made


def test_each_attempt_is_reviewed_and_meets_its_reward(judge, run):
    says = [opinions("trace"), opinions("trace", goal_reached=BROKEN), STANDS]
    result, _ = judge(*says, stage=JUDGE_TRACE, run=run("-+"))
    assert result.reason == "expected"
    reviews = result.facts["judge"]
    assert [one["subject"].rpartition("::")[2] for one in reviews] == ["teacher[m-0]", "teacher[m-1]"]
    assert [one["classification"] for one in reviews][1] == "false-positive"
    assert standings(result, 1)["goal_reached"] == "advisory"
    assert "1 false-positive" in result.headline


def test_a_fault_of_the_task_that_an_attempt_shows(judge, run):
    says = [opinions("trace", environment_fault=BROKEN), STANDS]
    result, _ = judge(*says, stage=JUDGE_TRACE, run=run("-"))
    assert (result.reason, result.headline) == ("judged-faulty", "environment_fault: step 2:4: it is\\x1b wrong")
    assert result.facts["judge"][0]["classification"] == "environment-fault"


def test_attempts_that_went_alike_are_asked_about_once(judge, run):
    """Since the judge does not know their rewards."""
    talk = talk_of(0)
    says = [opinions("trace", goal_reached=BROKEN), STANDS]
    result, machine = judge(*says, stage=JUDGE_TRACE, run=run("-+", talk))
    assert sum(len(chat.asked) for chat in machine.chats) == 2
    classes = [one["classification"] for one in result.facts["judge"]]
    assert classes == ["honest-failure", "false-positive"]


def test_the_judge_is_blind(judge, run):
    flags = ["touched-tests", "solved-without-change"]
    says = [opinions("trace", goal_reached=BROKEN), STANDS]
    _, machine = judge(*says, stage=JUDGE_TRACE, run=run("+", flags=flags, score=0.7351))
    told = "\n".join(text for chat in machine.chats for text in texts(chat.asked))
    assert "touched-tests" in told
    assert not any(word in told for word in ("solved-without", "0.7351", "expected", "teacher["))


def test_without_attempts(judge, run):
    result, machine = judge(stage=JUDGE_TRACE, run=run("!"))
    assert (result.reason, result.verdict, machine.chats) == ("no-attempts", Verdict.NA, [])


@pytest.mark.parametrize("talk", [{}, {"agent/trajectory.json": b"\x00"}])
def test_attempts_without_a_trajectory(judge, run, talk):
    result, _ = judge(stage=JUDGE_TRACE, run=run("+", talk))
    assert (result.reason, "of 1 the trajectory cannot be read" in result.headline) == ("no-attempts", True)


def test_a_trajectory_that_anybody_wrote(judge, run):
    """And a line of the ledger that is not as ours are."""
    odd = {"steps": [3, {"source": "agent", "message": {"a": 1}, "tool_calls": "x"}], "agent": None}
    talk = {"agent/trajectory.json": json.dumps(odd).encode()}
    result, _ = judge(opinions("trace"), stage=JUDGE_TRACE, run=run("x", talk, flags="none", statistics={"steps": "y"}))
    assert (result.reason, result.facts["judge"][0]["classification"]) == ("expected", "unclear")


# --- what it would take ---


@pytest.fixture
def taken(judge, fake_machine, tmp_path):
    """Estimate a stage after some reviews."""

    def told(*says, stage=JUDGE_TASK, prices=(None, None), **more):
        _, machine = judge(*says, stage=stage, **more)
        usd_in, usd_out = prices
        machine.model_section = lambda model: ModelSection(usd_in=usd_in, usd_out=usd_out)
        question = Question(make_task(tmp_path, test=TEST, files=FILES), DatasetSettings(), tmp_path, digest=DIGEST)
        return estimate(stage, machine, question)

    return told


def test_an_estimate(taken):
    found = taken(EndpointError("none"), prices=(1.0, 10.0))
    assert (found.reviews, found.known, found.answers, found.completion) == (1, 0, 1, 300)
    assert 500 < found.prompt < 3000
    assert found.usd == pytest.approx((found.prompt + 3000) / 1e6)
    assert str(found).startswith("1 review; at least 1 answer, about ")
    two = taken(EndpointError("none"), votes=3)
    assert (two.answers, two.prompt, two.usd) == (2, 2 * found.prompt, None)


def test_what_is_known_takes_nothing(taken):
    assert str(taken(opinions(clear=UNCLEAR), STANDS)) == "1 review, all from the cache"


def test_a_refuter_that_is_not_known_is_asked_again(taken):
    assert taken(opinions(clear=UNCLEAR), said("?")).known == 0


def test_of_attempts(taken, run):
    found = taken(EndpointError("none"), stage=JUDGE_TRACE, run=run("+-!"))
    assert (found.reviews, found.answers) == (2, 2)


def test_of_a_task_that_cannot_be_asked_about(judge, tmp_path):
    _, machine = judge(opinions())
    question = Question(make_task(tmp_path, toml="= x"), DatasetSettings(), tmp_path)
    assert estimate(JUDGE_TASK, machine, question) == Estimate()
