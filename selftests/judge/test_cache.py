"""Answers that are known."""

import pytest

from pytest_otval.judge import cache as module
from pytest_otval.judge.cache import CachedChat
from pytest_otval.judge.model import Spending
from pytest_otval.kept import Kept
from pytest_otval.llm.chat import EndpointError
from selftests.llm.scripted import ScriptedChat, said

ASK = [{"role": "user", "content": "What?"}]
SETTINGS = {"temperature": 0}
FORMAT = {"type": "json_object"}
PAID, KNOWN = Spending(1, 0, 10, 5), Spending(1, 1)


@pytest.fixture
def chat():
    return ScriptedChat([said("one"), said("two"), said("three")])


def ask(chat, folder, messages=ASK, settings=SETTINGS, vote=0, group="data", keep=True, answer_format=FORMAT):
    """One conversation of a process of its own; its answer and what it took."""
    kept = Kept(folder, module.VERSION)
    cached = CachedChat(chat, kept, group, settings, vote)
    reply = cached.complete(messages, answer_format)
    if keep:
        cached.keep()
    kept.close()
    return reply.message["content"], cached.spending


def test_the_same_question_is_asked_once(chat, tmp_path):
    assert ask(chat, tmp_path) == ("one", PAID)
    assert ask(chat, tmp_path) == ("one", KNOWN)
    assert len(chat.asked) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"messages": [*ASK, {"role": "assistant", "content": "x"}]},
        {"settings": {"temperature": 1}},
        {"vote": 1},
        {"group": "other"},
        {"answer_format": {"type": "text"}},
    ],
)
def test_another_question_is_asked(chat, tmp_path, other):
    ask(chat, tmp_path)
    assert ask(chat, tmp_path, **other) == ("two", PAID)
    assert ask(chat, tmp_path, **other) == ("two", KNOWN)


def test_another_model_is_asked(chat, tmp_path):
    ask(chat, tmp_path)
    assert ask(ScriptedChat([said("other")], "other/model"), tmp_path) == ("other", PAID)


def test_what_nobody_understood_is_asked_for_again(chat, tmp_path):
    assert ask(chat, tmp_path, keep=False)[0] == "one"
    assert ask(chat, tmp_path)[0] == "two"
    assert ask(chat, tmp_path) == ("two", KNOWN)


def test_a_conversation_is_known_to_its_end(chat, tmp_path):
    for spent in (PAID + PAID, KNOWN + KNOWN):
        kept = Kept(tmp_path, module.VERSION)
        cached = CachedChat(chat, kept, "data", SETTINGS)
        first = cached.complete(ASK, FORMAT)
        second = cached.complete([*ASK, first.message, *ASK], FORMAT)
        cached.keep()
        kept.close()
        assert (first.message["content"], second.message["content"], second.finish) == ("one", "two", "stop")
        assert cached.spending == spent
    assert chat.formats == [FORMAT, FORMAT]


def test_the_same_process_knows_it_at_once(chat, tmp_path):
    kept = Kept(tmp_path, module.VERSION)
    for _ in range(2):
        cached = CachedChat(chat, kept, "data", SETTINGS)
        assert cached.complete(ASK, FORMAT).message["content"] == "one"
        cached.keep()
    assert cached.spending == KNOWN
    kept.close()


def test_a_killed_run_loses_nothing_that_was_understood(chat, tmp_path):
    cached = CachedChat(chat, Kept(tmp_path, module.VERSION), "data", SETTINGS)
    cached.complete(ASK, FORMAT)
    cached.keep()
    assert ask(chat, tmp_path) == ("one", KNOWN)


def test_an_error_is_nothing_to_keep(tmp_path):
    chat = ScriptedChat([EndpointError("down"), said("one")])
    with pytest.raises(EndpointError):
        ask(chat, tmp_path)
    assert ask(chat, tmp_path) == ("one", PAID)


@pytest.mark.parametrize("value", [3, [], {"message": "x", "finish": "stop"}, {"message": {"content": None}}])
def test_what_is_no_answer_is_not_known(chat, tmp_path, monkeypatch, value):
    monkeypatch.setattr(Kept, "get", lambda self, group, key: value)
    assert ask(chat, tmp_path) == ("one", PAID)
