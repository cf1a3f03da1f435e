"""The plain loop of tool calls."""

import pytest

from pytest_otval.llm.agents.tools import CUT_OFF, HOW_TO_CALL, MOST_MALFORMED, ToolAgent, shown
from pytest_otval.llm.session import MOST_CHARACTERS, StopAttempt
from pytest_otval.llm.shell import Ran
from selftests.fakes import Answer
from selftests.llm.scripted import Place, ScriptedChat, call, runs, said, session_of


@pytest.fixture
def solve(tmp_path):
    def make(*says, answer=lambda line: Answer(output=b"out\n"), max_steps=10):
        chat, place = ScriptedChat(says), Place(tmp_path, answer)
        session = session_of(chat, place, max_steps)
        try:
            finish = ToolAgent().solve(session)
        except StopAttempt as stop:
            finish = str(stop)
        return finish, chat, place, session.record

    return make


def told(chat, number=-1):
    """What the model was told behind its latest answer, when it was asked for the one of this number."""
    messages = chat.asked[number]
    latest = max(at for at, message in enumerate(messages) if message["role"] == "assistant")
    return [message["content"] for message in messages[latest + 1 :]]


def test_until_it_answers_without_a_call(solve):
    finish, chat, place, record = solve(runs("ls"), said("done"))
    assert (finish, place.lines, len(record.steps)) == ("submitted", ["ls"], 1)
    assert told(chat) == ["out\n[exit status 0]"]
    assert [message["role"] for message in chat.asked[1]] == ["system", "user", "assistant", "tool"]


def test_parallel_calls(solve):
    both = said("", call({"command": "a"}), call({"command": "b"}, id="c2"), call({"no": 1}, id="c3"))
    finish, chat, place, record = solve(both, said("done"))
    assert (finish, place.lines) == ("submitted", ["a", "b"])
    assert told(chat) == ["out\n[exit status 0]"] * 2 + [f"error: {HOW_TO_CALL}"]
    assert [message["tool_call_id"] for message in chat.asked[1][3:]] == ["c1", "c2", "c3"]
    assert [step.malformed for step in record.steps] == [False, False, True]


@pytest.mark.parametrize(
    "broken",
    [
        call("{"),
        call(""),
        call("[" * 100_000),
        call([]),
        call({"command": 5}),
        call({"command": None}),
        call({"cmd": "ls"}),
        call({"command": "ls"}, "no_such_tool"),
    ],
)
def test_calls_that_cannot_be_understood(solve, broken):
    finish, chat, place, record = solve(said("", broken))
    assert (finish, len(chat.asked), place.lines) == ("format", MOST_MALFORMED, [])
    assert [step.malformed for step in record.steps] == [True] * MOST_MALFORMED


def test_one_that_is_understood_starts_the_count_anew(solve):
    bad, good = said("", call("{")), runs("ls")
    finish, chat, _, record = solve(bad, bad, good, bad, bad, said("done"))
    assert (finish, len(chat.asked)) == ("submitted", 6)
    assert sum(step.malformed for step in record.steps) == 4


def test_an_answer_that_was_cut_off(solve):
    finish, chat, _, record = solve(said("word " * 9, finish="length"), said("done"))
    assert (finish, told(chat), [step.malformed for step in record.steps]) == ("submitted", [CUT_OFF], [True])
    assert solve(said("word", finish="length"))[0] == "format"


def test_a_call_that_was_cut_off(solve):
    finish, chat, _, _ = solve(said("", call('{"command": "ec'), finish="length"), said("done"))
    assert (finish, told(chat)) == ("submitted", [f"error: {HOW_TO_CALL}"])


def test_no_tool_calls_at_all(solve):
    finish, chat, _, record = solve(said("I am done."))
    assert (finish, len(chat.asked), len(record.steps)) == ("submitted", 1, 0)


def test_limits_get_through(solve):
    assert solve(runs("ls"), max_steps=3)[0] == "steps"
    assert solve(runs("ls"), answer=lambda line: Answer("storage", None))[0] == "storage"


@pytest.mark.parametrize(
    ("ran", "text"),
    [
        (Ran("", 0, 0.1), "[exit status 0]"),
        (Ran("a\n\n", 3, 0.1), "a\n[exit status 3]"),
        (Ran("a", None, 0.1, note="too late"), "a\n[too late]"),
    ],
)
def test_what_the_model_is_told(ran, text):
    assert shown(ran) == text


def test_long_output_is_shortened():
    assert len(shown(Ran("x" * 10 * MOST_CHARACTERS, 0, 0.1))) < MOST_CHARACTERS + 100
