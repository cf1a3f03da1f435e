"""teacher over a fake sandbox and a scripted model: which answer an attempt is, and what is told of it."""

import json

import pytest

from pytest_otval.core import OtvalUsageError, Verdict
from pytest_otval.llm.agents.tools import ToolAgent
from pytest_otval.llm.budget import Budget
from pytest_otval.llm.chat import BudgetSpentError, ContextOverflowError, EndpointError, Usage
from pytest_otval.stages.question import Question
from pytest_otval.stages.registry import ask as ask_stage
from pytest_otval.stages.spec import TEACHER
from pytest_otval.task.dataset import DatasetSettings
from selftests.fakes import TOML, Answer, make_task, writes_reward
from selftests.llm.atif_rules import faults_of
from selftests.llm.scripted import ScriptedChat, runs, said

STEPS = TOML + '[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n'
SOLVES = (runs("echo 1 >/app/answer"), said("done"))


@pytest.fixture
def attempt(fake_machine, tmp_path):
    """Make one attempt: its answer, how often it was tried again, the machine, and where its logs are."""

    def make(
        script=None,
        says=SOLVES,
        task=None,
        agent=None,
        max_steps=10,
        budget=None,
        settings=None,
        refuses=None,
        **verdict,
    ):
        machine = fake_machine(script or writes_reward("1"), max_steps=max_steps, **verdict)
        machine.sandbox.refuses = refuses or machine.sandbox.refuses
        chat = says if callable(says) else lambda model, attempt: ScriptedChat(says, model)
        machine.chat, machine.model_agent = chat, agent or ToolAgent()
        machine.budget = budget or Budget(tmp_path / "run")
        evidence = tmp_path / "evidence"
        asked = Question(
            task or make_task(tmp_path), settings or DatasetSettings(), evidence, attempt=2, model="some/model"
        )
        result, retries = ask_stage(TEACHER, machine, asked)
        return result, retries, machine, evidence

    return make


def of_agent(ended, of="echo 1 >/app/answer", reward="1", **more):
    """A script: the command of the agent ends like this."""
    verify = writes_reward(reward)

    def script(container, command):
        return Answer(ended, **more) if command.argv[-1] == of else verify(container, command)

    return script


@pytest.mark.parametrize(
    ("reward", "reason", "verdict"),
    [("1", "expected", "pass"), ("0", "unsolved", "pass"), ("0.25", "unsolved", "pass"), ("-1", "unsolved", "pass")],
)
def test_a_score_is_an_answer(attempt, reward, reason, verdict):
    settings = DatasetSettings(reward_range=(-1.0, 1.0))
    result, retries, _, _ = attempt(writes_reward(reward), settings=settings)
    assert (result.reason, result.verdict, retries) == (reason, verdict, 0)
    assert result.headline == f"score {float(reward):g} after 2 steps"
    assert result.facts["score"] == float(reward)
    (trial,) = result.facts["trials"]
    assert (trial["class"], trial["headline"], trial["agent"]) == (reason, result.headline, "tools")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (writes_reward(None), "no-reward"),
        (writes_reward("x"), "reward-unreadable"),
        (writes_reward("7"), "reward-out-of-range"),
        (of_agent("timeout", "/tests/test.sh", status=None), "verifier-timeout"),
        (of_agent("memory", "/tests/test.sh", status=None), "memory-limit"),
        (of_agent("storage", "/tests/test.sh", status=None), "storage-limit"),
    ],
)
def test_faults_of_a_verifier_are_no_failures_of_a_model(attempt, script, reason):
    result, retries, _, _ = attempt(script)
    assert (result.reason, result.verdict, retries) == (reason, Verdict.FAIL, 0)
    assert result.facts["trajectory"]["finish"] == "submitted"


@pytest.mark.parametrize(
    ("error", "reason"), [(EndpointError("it is dead"), "endpoint-failed"), (BudgetSpentError("spent"), "budget-spent")]
)
@pytest.mark.parametrize("before", [0, 1])
def test_errors_are_no_attempt_and_not_tried_again(attempt, error, reason, before):
    """Nothing is scored for them: no verifier runs."""
    asked = []

    def chat(model, number):
        asked.append((model, number))
        return ScriptedChat([*SOLVES[:before], error], model)

    result, retries, machine, evidence = attempt(says=chat)
    assert (result.reason, result.verdict, retries, asked) == (reason, "error", 0, [("some/model", 2)])
    assert str(error) in result.headline
    assert result.facts["score"] is None
    assert "/tests/test.sh" not in [command.argv[-1] for command in machine.sandbox.commands]
    facts = result.facts["trajectory"]
    assert (facts["finish"], facts["statistics"]["commands"], facts["prompt_tokens"]) == ("", before, 10 * before)
    told = json.loads((evidence / "result.json").read_bytes())
    assert (told["agent_result"]["n_input_tokens"], told["reward_valid"]) == (10 * before, False)
    assert json.loads((evidence / "agent" / "trajectory.json").read_bytes())["extra"] == {"finish": ""}


def test_an_endpoint_that_nobody_knows(attempt):
    def chat(model, number):
        raise OtvalUsageError("the model has no base_url")

    result, retries, machine, _ = attempt(says=chat)
    assert (result.reason, retries, machine.sandbox.containers) == ("endpoint-failed", 0, [])


def test_a_budget_that_is_spent_before(attempt, tmp_path):
    budget = Budget(tmp_path / "run", tokens=10)
    budget.spend("m", Usage(10, 1))
    result, retries, machine, _ = attempt(budget=budget)
    assert (result.reason, retries, machine.sandbox.containers) == ("budget-spent", 0, [])


def test_a_machine_at_fault_is_tried_again(attempt):
    result, retries, _, _ = attempt(of_agent("killed", status=None))
    assert (result.reason, retries) == ("killed", 2)


@pytest.mark.parametrize(
    ("says", "max_steps", "finish"),
    [
        ([runs("ls")], 2, "steps"),
        ([runs("ls"), TimeoutError("late")], 9, "time"),
        ([runs("ls"), ContextOverflowError("long")], 9, "context"),
    ],
)
@pytest.mark.parametrize(("reward", "reason"), [("1", "expected"), ("0", "unsolved")])
def test_one_that_was_cut_off_is_verified(attempt, says, max_steps, finish, reward, reason):
    result, _, _, _ = attempt(writes_reward(reward), says=says, max_steps=max_steps)
    facts = result.facts["trajectory"]
    assert (result.reason, facts["finish"], facts["truncated"]) == (reason, finish, True)
    assert result.headline.endswith(f", {finish} over")
    assert ("solved-after-truncation" in facts["flags"]) == (reason == "expected")


@pytest.mark.parametrize(
    ("reply", "finish"), [(said("", finish="content_filter"), "refused"), (said("x", finish="length"), "format")]
)
def test_ends_that_are_no_limits(attempt, reply, finish):
    result, _, _, _ = attempt(writes_reward("0"), says=[reply])
    facts = result.facts["trajectory"]
    assert (result.reason, facts["finish"], facts["truncated"]) == ("unsolved", finish, False)


def test_memory_is_counted_and_the_attempt_goes_on(attempt):
    result, _, machine, _ = attempt(of_agent("memory", status=None))
    assert (result.reason, result.facts["trajectory"]["memory_kills"]) == ("expected", 1)
    first, second, *_ = machine.sandbox.containers
    assert (first.spec.overlay, first.spec.network) == (second.spec.overlay, second.spec.network)
    assert {bind.target for bind in first.spec.binds} <= {bind.target for bind in second.spec.binds}


def test_storage_ends_it_and_the_verifier_runs(attempt):
    result, _, _, _ = attempt(of_agent("storage", status=None, reward="0"))
    facts = result.facts["trajectory"]
    assert (result.reason, facts["finish"], facts["truncated"]) == ("unsolved", "storage", True)


def test_a_disk_that_is_too_full_to_verify_is_no_fault_of_the_task(attempt):
    def script(container, command):
        full = command.argv[-1] in ("echo 1 >/app/answer", "/tests/test.sh")
        return Answer("storage", None) if full else None

    result, _, _, _ = attempt(script)
    assert (result.reason, result.verdict, result.facts["score"]) == ("unsolved", "pass", None)
    assert "storage_mb" in result.headline


def test_a_machine_that_the_model_wrecked(attempt):
    """The verifier's container, which is the second, does not start."""
    result, retries, machine, _ = attempt(refuses=lambda number: "no /bin" if number else "")
    assert (result.reason, result.verdict, result.facts["score"], retries) == ("unsolved", "pass", None, 0)
    assert "no container starts" in result.headline
    assert len(machine.sandbox.containers) == 2


def test_an_agent_that_ends_in_no_known_way(attempt):
    class Odd(ToolAgent):
        name = "odd"

        def solve(self, session):
            return "bored"

    result, _, _, _ = attempt(agent=Odd())
    assert (result.reason, "odd ended by 'bored'" in result.headline) == ("internal", True)


def test_what_it_took(attempt):
    result, _, _, evidence = attempt()
    facts = result.facts["trajectory"]
    names = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "usd", "retries")
    assert [facts[name] for name in names] == [20, 10, 8, 0, None, 0]
    told = json.loads((evidence / "result.json").read_bytes())
    used = {"n_input_tokens": 20, "n_cache_tokens": 8, "n_output_tokens": 10, "cost_usd": None}
    assert told["agent_info"] == {
        "name": "tools",
        "version": "1",
        "model_info": {"name": "some/model", "provider": None},
    }
    assert {name: told["agent_result"][name] for name in used} == used
    assert told["agent_result"]["model_usage"] == {"some/model": used}
    assert told["agent_result"]["metadata"]["finish"] == "submitted"
    assert faults_of(json.loads((evidence / "agent" / "trajectory.json").read_bytes())) == []
    assert [path.name for path in (evidence / "agent").iterdir()] == ["trajectory.json"]
    assert json.dumps(dict(result.facts), allow_nan=False)


def test_what_the_task_is_about_stands_in_its_line(attempt, tmp_path):
    task = make_task(tmp_path, toml=TOML + '[metadata]\nrepo = "org/it"\n')
    assert attempt(task=task)[0].facts["trajectory"]["repository"] == "org/it"


def test_each_step_of_a_task_has_a_trajectory(attempt, tmp_path):
    files = {f"steps/{name}/{file}": f"do {name}\n" for name in ("one", "two") for file in ("instruction.md",)}
    files |= {f"steps/{name}/tests/test.sh": "#!/bin/bash\n" for name in ("one", "two")}
    task = make_task(tmp_path, toml=STEPS, files=files)
    says = [runs("ls"), said("done"), runs("ls"), runs("ls")]
    result, _, _, evidence = attempt(says=says, task=task, max_steps=2)
    assert (result.reason, result.facts["trajectory"]["finish"]) == ("expected", "steps")
    assert result.facts["trajectory"]["truncated"]
    assert result.facts["trajectory"]["statistics"]["commands"] == 3
    for name, finish in (("one", "submitted"), ("two", "steps")):
        found = json.loads((evidence / "steps" / name / "agent" / "trajectory.json").read_bytes())
        assert (faults_of(found), found["extra"]) == ([], {"finish": finish})
        assert found["steps"][1]["message"] == f"do {name}\n"
    told = json.loads((evidence / "result.json").read_bytes())
    assert [step["agent_result"]["n_input_tokens"] for step in told["step_results"]] == [20, 20]


def test_an_instruction_that_says_nothing(attempt, tmp_path):
    result, _, machine, _ = attempt(task=make_task(tmp_path, files={"instruction.md": " \n"}))
    assert (result.reason, machine.sandbox.containers) == ("bad-task", [])


def test_protected_paths_are_flagged(attempt):
    says = [runs("echo 1 >/logs/verifier/reward.txt"), said("done")]
    flags = attempt(says=says)[0].facts["trajectory"]["flags"]
    assert any(flag.startswith("touched-") for flag in flags)
    assert "solved-without-change" in flags


@pytest.mark.parametrize("rules", ["default", "strict", "harbor"])
def test_rules(attempt, rules):
    assert attempt(rules=rules)[0].reason == "expected"
    assert attempt(writes_reward("0"), rules=rules)[0].reason == "unsolved"


def test_a_score_that_only_harbor_takes(attempt):
    """Ours finds a fault, so there is no score of ours to tell."""
    result, _, _, _ = attempt(writes_reward("7"), rules="harbor")
    assert (result.reason, result.verdict) == ("expected", "pass")
    assert attempt(writes_reward("7"), rules="strict")[0].reason == "reward-out-of-range"


def test_the_model_gets_nothing_of_the_task_but_its_instruction(attempt, tmp_path):
    chats = []

    def chat(model, number):
        chats.append(ScriptedChat(SOLVES, model))
        return chats[-1]

    task = make_task(tmp_path, solve="echo SOLUTION", test="echo TESTS", files={"instruction.md": "do it\n"})
    _, _, machine, _ = attempt(says=chat, task=task)
    told = json.dumps(chats[0].asked)
    assert "do it" in told
    assert not any(word in told for word in ("SOLUTION", "TESTS", str(tmp_path)))
    agent = machine.sandbox.containers[0]
    assert {bind.target for bind in agent.spec.binds} == {"/logs/agent"}
