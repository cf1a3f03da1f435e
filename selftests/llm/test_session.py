"""An attempt: its limits, whatever the agent is, and the record of it."""

import time

import pytest

from pytest_otval.llm import session as sessions
from pytest_otval.llm.chat import BudgetSpentError, ContextOverflowError, EndpointError
from pytest_otval.llm.session import COMMAND_SECONDS, MOST_CHARACTERS, STOPS, TRUNCATED, StopAttempt, shortened
from selftests.fakes import Answer
from selftests.llm.scripted import Place, ScriptedChat, call, runs, said, session_of, trajectory_of

ASK = [{"role": "system", "content": "s"}, {"role": "user", "content": "do it"}]


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def stopped_by(session, do):
    with pytest.raises(StopAttempt) as caught:
        do(session)
    assert str(caught.value) in STOPS
    return str(caught.value)


def test_as_many_answers_as_an_attempt_may_take(place):
    chat = ScriptedChat([runs("true")])
    session = session_of(chat, place, max_steps=2)
    session.ask(ASK)
    session.run("a", "c1")
    session.ask(ASK)
    session.run("b", "c1")
    assert stopped_by(session, lambda one: one.ask(ASK)) == "steps"
    assert (len(chat.asked), place.lines, [step.command for step in session.record.steps]) == (
        2,
        ["a", "b"],
        ["a", "b"],
    )


def test_time(place, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(sessions.time, "monotonic", lambda: now[0])
    chat = ScriptedChat([runs("true")])
    session = session_of(chat, place, seconds=200.0)
    session.ask(ASK)
    session.run("a")
    assert (chat.deadlines, place.commands[-1].seconds) == ([300.0], COMMAND_SECONDS + 10)
    now[0] = 270.0
    session.run("b")
    assert place.commands[-1].seconds == 40
    now[0] = 300.0
    assert stopped_by(session, lambda one: one.run("c")) == "time"
    assert stopped_by(session, lambda one: one.look("c")) == "time"
    assert stopped_by(session, lambda one: one.ask(ASK)) == "time"
    assert (place.lines, len(chat.asked)) == (["a", "b"], 1)


def test_without_a_limit_of_time(place):
    chat = ScriptedChat([runs("true")])
    session_of(chat, place).ask(ASK)
    assert chat.deadlines == [None]


@pytest.mark.parametrize(
    ("error", "finish"), [(ContextOverflowError("long"), "context"), (TimeoutError("late"), "time")]
)
def test_what_ends_an_attempt_at_the_endpoint(place, error, finish):
    session = session_of(ScriptedChat([error]), place)
    assert stopped_by(session, lambda one: one.ask(ASK)) == finish
    assert finish in TRUNCATED


@pytest.mark.parametrize("error", [EndpointError("dead"), BudgetSpentError("spent")])
def test_what_is_no_end_of_an_attempt(place, error):
    with pytest.raises(type(error)):
        session_of(ScriptedChat([error]), place).ask(ASK)


def test_a_refusal(place):
    session = session_of(ScriptedChat([said("no", finish="content_filter")]), place)
    assert stopped_by(session, lambda one: one.ask(ASK)) == "refused"
    session.close("refused")
    assert ("refused" in TRUNCATED, len(session.record.steps), len(session.record.usages)) == (False, 1, 1)


def test_storage(tmp_path):
    place = Place(tmp_path, lambda line: Answer("storage", None))
    session = session_of(ScriptedChat([runs("fill")]), place)
    session.ask(ASK)
    assert stopped_by(session, lambda one: one.run("fill", "c1")) == "storage"
    assert [(step.command, step.status) for step in session.record.steps] == [("fill", None)]


def test_storage_at_a_look_of_the_agent(tmp_path):
    session = session_of(ScriptedChat([]), Place(tmp_path, lambda line: Answer("storage", None)))
    assert stopped_by(session, lambda one: one.look("uname")) == "storage"
    assert session.record.steps == []


def test_the_first_step_of_an_answer_has_what_the_answer_took(place):
    reply = said("think", call({"command": "a"}), call({"command": "b"}, id="c2"), reasoning_content="deep")
    session = session_of(ScriptedChat([reply]), place)
    session.ask(ASK)
    session.run("a", "c1")
    session.run("b", "c2")
    first, second = session.record.steps
    assert (first.usage.tokens, first.thought, first.reasoning, first.model_seconds) == (15, "think", "deep", 0.5)
    assert (second.usage.tokens, second.thought, second.reasoning, second.model_seconds) == (0, "", "", 0)


def test_an_answer_without_a_command_is_a_step(place):
    session = session_of(ScriptedChat([said("done")]), place)
    session.ask(ASK)
    session.close("submitted")
    (step,) = session.record.steps
    assert (step.command, step.thought, session.record.finish) == ("", "done", "submitted")


def test_parts_of_a_content_are_no_thought(place):
    session = session_of(ScriptedChat([said([{"type": "text", "text": "x"}])]), place)
    session.ask(ASK)
    session.close("submitted")
    assert session.record.steps[0].thought == ""
    assert trajectory_of(place)["steps"][2]["message"] == "x"


def test_counts(tmp_path):
    answers = {"oom": Answer("memory", None), "serve &": Answer(left_alive=3)}
    place = Place(tmp_path, answers.get)
    session = session_of(ScriptedChat([runs("x")]), place)
    session.ask(ASK)
    session.run("oom")
    session.run("serve &")
    session.malformed("what?")
    record = session.record
    assert (record.memory_kills, record.left_alive, [step.malformed for step in record.steps]) == (
        1,
        3,
        [False, False, True],
    )


def test_a_look_of_the_agent_is_no_step(place):
    session = session_of(ScriptedChat([]), place)
    assert session.look("uname") == ""
    session.close("submitted")
    assert session.record.steps == []


def test_a_time_out_is_told(tmp_path, monkeypatch):
    place = Place(tmp_path, lambda line: Answer("timeout", None, b"so far"))
    session = session_of(ScriptedChat([runs("sleep")]), place)
    session.ask(ASK)
    assert session.run("sleep", "c1").timed_out
    session.close("steps")
    step = trajectory_of(place)["steps"][2]
    assert step["extra"]["commands"][0]["timed_out"] is True
    assert step["extra"]["commands"][0]["status"] is None


@pytest.mark.parametrize("length", [0, MOST_CHARACTERS, MOST_CHARACTERS + 1, 10 * MOST_CHARACTERS])
def test_shortened(length):
    text = shortened("a" * (length - length // 2) + "b" * (length // 2))
    assert len(text) <= MOST_CHARACTERS + 60
    if length > MOST_CHARACTERS:
        assert f"[{length - MOST_CHARACTERS} characters are left out here]" in text
        assert (text[0], text[-1]) == ("a", "b")


def test_the_clock_that_counts_is_the_monotonic_one(place):
    before = time.monotonic()
    chat = ScriptedChat([said("x")])
    session_of(chat, place, seconds=50.0).ask(ASK)
    assert before + 50 <= chat.deadlines[0] <= time.monotonic() + 50
