"""Trajectories: valid ATIF v1.8 whatever was said, and what the model was told word for word."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_otval.llm.atif import MOST_LEVELS, Trajectory
from pytest_otval.llm.chat import Usage
from selftests.llm.atif_rules import faults_of
from selftests.llm.scripted import call, runs, said, texts

ASK = [{"role": "system", "content": "s"}, {"role": "user", "content": "do it"}]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agent" / "trajectory.json"


@pytest.fixture
def trajectory(path):
    return Trajectory(path, "tools", "1", "m", "id")


def read(path):
    found = json.loads(path.read_bytes())
    assert faults_of(found) == []
    return found


def test_a_conversation(trajectory, path):
    trajectory.tools([{"type": "function", "function": {"name": "shell"}}])
    trajectory.heard(ASK)
    first = runs("ls")
    trajectory.answered(first)
    trajectory.observed("whole output", "c1", {"status": 0})
    trajectory.write()
    assert read(path)["steps"][2]["observation"]["results"] == [{"content": "whole output", "source_call_id": "c1"}]
    more = [*ASK, first.message, {"role": "tool", "tool_call_id": "c1", "content": "cut output"}]
    trajectory.heard(more)
    trajectory.answered(said("done"))
    trajectory.write({"finish": "submitted"})
    found = read(path)
    assert [step["source"] for step in found["steps"]] == ["system", "user", "agent", "agent"]
    asked = found["steps"][2]
    assert asked["tool_calls"] == [{"tool_call_id": "c1", "function_name": "shell", "arguments": {"command": "ls"}}]
    assert asked["observation"]["results"] == [{"content": "cut output", "source_call_id": "c1"}]
    assert asked["extra"]["commands"] == [{"status": 0}]
    assert asked["metrics"] == {"prompt_tokens": 10, "completion_tokens": 5, "cached_tokens": 4}
    assert found["final_metrics"] == {
        "total_prompt_tokens": 20,
        "total_completion_tokens": 10,
        "total_cached_tokens": 8,
        "total_cost_usd": None,
        "total_steps": 4,
    }
    assert (found["extra"], found["session_id"], found["agent"]["model_name"]) == ({"finish": "submitted"}, "id", "m")
    assert [one["function"]["name"] for one in found["agent"]["tool_definitions"]] == ["shell"]


def test_nothing_is_written_without_a_step(trajectory, path):
    trajectory.write()
    assert not path.exists()
    assert not trajectory.begun


def test_what_was_written_before_stays_as_it_was(trajectory, path):
    trajectory.heard(ASK)
    trajectory.answered(said("one"))
    trajectory.write()
    before = read(path)["steps"]
    trajectory.heard([*ASK, {"role": "assistant", "content": "one"}, {"role": "user", "content": "go on"}])
    trajectory.answered(said("two"))
    trajectory.write()
    after = read(path)["steps"]
    assert after[: len(before)] == before
    assert [step["message"] for step in after] == ["s", "do it", "one", "go on", "two"]
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_conversation_that_the_agent_rewrote(trajectory, path):
    trajectory.heard(ASK)
    trajectory.answered(said("one"))
    trajectory.heard([ASK[0], {"role": "user", "content": "in short: one"}])
    trajectory.answered(said("two"))
    trajectory.write()
    assert [step["message"] for step in read(path)["steps"]] == ["s", "do it", "one", "in short: one", "two"]


def test_a_command_that_no_call_asked_for(trajectory, path):
    trajectory.observed("before any answer", None, {})
    trajectory.heard(ASK)
    trajectory.answered(said("```bash\nls\n```"))
    trajectory.observed("files", None, {})
    trajectory.observed("others", "no-such-call", {})
    trajectory.heard([*ASK, {"role": "tool", "tool_call_id": "neither", "content": "more"}])
    trajectory.write()
    results = read(path)["steps"][2]["observation"]["results"]
    assert results == [{"content": "files"}, {"content": "others"}, {"content": "more"}]


def test_malformed(trajectory, path):
    trajectory.malformed("before any answer")
    trajectory.heard(ASK)
    trajectory.answered(said("", call("{", id="c9")))
    trajectory.malformed("no JSON")
    told = [*ASK, {"role": "assistant"}, {"role": "tool", "tool_call_id": "c9", "content": "error: no JSON"}]
    trajectory.heard(told)
    trajectory.write()
    step = read(path)["steps"][2]
    assert step["extra"]["malformed"] == "no JSON"
    assert step["tool_calls"][0]["arguments"] == {"malformed": "{"}
    assert step["observation"]["results"] == [{"content": "error: no JSON", "source_call_id": "c9"}]


def deep(levels):
    return '{"a":' * levels + "1" + "}" * levels


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{",
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": ' + "9" * 5000 + "}",
        deep(MOST_LEVELS + 1),
        deep(100_000),
        "[" * 100_000,
    ],
    ids=lambda text: text[:15] + str(len(text)),
)
def test_arguments_that_are_no_json_of_all_readers(trajectory, path, text):
    trajectory.heard(ASK)
    trajectory.answered(said("", call(text)))
    trajectory.write()
    assert read(path)["steps"][2]["tool_calls"][0]["arguments"] == {"malformed": text}


@pytest.mark.parametrize("text", ["{}", '{"command": "ls", "n": [1, {"b": null}]}', deep(MOST_LEVELS), '{"a": 1e99}'])
def test_arguments_as_they_are(trajectory, path, text):
    trajectory.heard(ASK)
    trajectory.answered(said("", call(text)))
    trajectory.write()
    assert read(path)["steps"][2]["tool_calls"][0]["arguments"] == json.loads(text)


def test_prices(trajectory, path):
    trajectory.heard(ASK)
    for usd in (0.25, 0.5):
        reply = said("x")
        object.__setattr__(reply, "usage", Usage(1, 1, usd=usd))
        trajectory.answered(reply)
    trajectory.write()
    found = read(path)
    assert found["final_metrics"]["total_cost_usd"] == 0.75
    assert found["steps"][3]["metrics"]["cost_usd"] == 0.5


CHARACTERS = st.characters() | st.sampled_from('\0\x1b\ud800\udc00\ud83d\ufffe\u2028<&"\\')
TEXT = st.text(CHARACTERS, max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
CONTENT = TEXT | st.none() | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT | JSON}), max_size=2)
CALL = st.builds(call, TEXT | JSON, TEXT, st.sampled_from(["a", "b", "\ud800"]))
ANSWER = st.builds(
    lambda content, calls, finish, reasoning: said(
        content, *{one["id"]: one for one in calls}.values(), finish=finish, reasoning=reasoning
    ),
    CONTENT,
    st.lists(CALL, max_size=3),
    TEXT,
    CONTENT,
)
TOLD = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["system", "user", "assistant", "tool", "developer"]),
        "content": CONTENT,
        "tool_call_id": st.sampled_from(["a", "b", "c", "\ud800"]),
    }
)
DEED = (
    st.tuples(st.just("heard"), st.lists(TOLD, max_size=3))
    | st.tuples(st.just("answered"), ANSWER)
    | st.tuples(
        st.just("observed"), TEXT, st.none() | st.sampled_from(["a", "b", "\ud800"]), st.just({"note": "\ud800"})
    )
    | st.tuples(st.just("malformed"), TEXT)
    | st.tuples(st.just("write"))
)


@settings(max_examples=150)
@given(st.lists(DEED, max_size=8), TEXT, TEXT)
def test_any_conversation_is_valid(deeds, model, finish):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trajectory.json"
        trajectory = Trajectory(path, "tools", "1", model, "id")
        conversation = []
        for name, *values in deeds:
            if name == "heard":
                conversation += values[0]
                values = [list(conversation)]
            getattr(trajectory, name)(*values)
        trajectory.write({"finish": finish})
        assert path.exists() == trajectory.begun
        if path.exists():
            found = read(path)
            for text in texts(found):
                text.encode()
