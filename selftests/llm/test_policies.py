"""The tests' model says the same to the same, in the protocol that it is asked in."""

import json
import re
from pathlib import Path

import pytest

from selftests.llm.policies import MODELS, SUBMIT, Model, Policies, step_of

SYSTEM = {"role": "system", "content": "Use one block:\n```mswea_bash_command\nls\n```"}
ASK = {"role": "user", "content": f"Please write 42. Then: {SUBMIT}"}
BASH = {
    "type": "function",
    "function": {"name": "run", "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}}},
}


@pytest.fixture
def policies(tmp_path):
    file = Path(tmp_path / "policies.toml")
    file.write_text(
        'seed = 3\n[[tasks]]\ninstruction = "write 42"\ncommands = ["echo 42 > a", "cat a"]\n'
        '[models.rarely]\npolicy = "sometimes"\nrate = 0.25\n[models.slow]\nseconds = 9.0\n'
    )
    return Policies.read(file)


def talk(policies, model, tools=(), attempt=0, most=12):
    """What a loop makes of it that runs every command and gives up after ``most`` answers."""
    messages, said = [SYSTEM, ASK], []
    for _ in range(most):
        answer = policies.say(model, {"messages": messages, "tools": list(tools)}, attempt)
        # Later answers must not need to be told.
        attempt = 10**6
        message = answer["message"]
        messages.append(message)
        if tools:
            found = [json.loads(one["function"]["arguments"])["cmd"] for one in message["tool_calls"]]
            messages += [{"role": "tool", "content": "write 43"}] * len(found)
        else:
            found = re.findall(r"```mswea_bash_command\s*\n(.*?)\n```", message["content"], re.DOTALL)
            messages.append({"role": "user", "content": "write 43"})
        said += found
        if not found or SUBMIT in found:
            break
    return said


@pytest.mark.parametrize("tools", [(), (BASH,)])
def test_it_solves_what_the_file_says(policies, tools):
    assert talk(policies, MODELS["solves"], tools) == ["echo 42 > a", "cat a", SUBMIT]
    assert talk(Policies(), MODELS["solves"], tools) == ["true", SUBMIT]


def test_a_loop_never_ends(policies):
    assert talk(policies, MODELS["loops"], [BASH]) == ["ls -la"] * 12


def test_some_attempts_solve_and_always_the_same(policies):
    solved = [len(talk(policies, policies.models["rarely"], [BASH], number)) == 3 for number in range(40)]
    assert 4 <= sum(solved) <= 16
    assert solved == [len(talk(policies, policies.models["rarely"], (), number)) == 3 for number in range(40)]
    assert all(len(talk(policies, Model("sometimes", rate=1.0), (), number)) == 3 for number in range(5))


def test_a_file_changes_settings_of_known_names(policies):
    assert policies.models["slow"] == Model(fault="slow", times=-1, seconds=9.0)


@pytest.mark.parametrize(
    ("roles", "step"),
    [
        (["system", "user"], 0),
        (["system", "user", "user"], 0),
        (["system", "user", "assistant", "tool", "tool"], 1),
        (["system", "user", "assistant", "user", "assistant", "user"], 2),
        # A complaint about an answer that is not among the messages.
        (["system", "user", "assistant", "tool", "user", "user"], 3),
    ],
)
def test_complaints_count_as_answers(roles, step):
    assert step_of([{"role": role} for role in roles]) == step
