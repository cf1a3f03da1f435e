"""Answers in the forms in which servers give them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.llm import answers
from pytest_otval.llm.answers import Answer, BrokenAnswerError
from pytest_otval.llm.chat import Usage


def piece(finish=None, **delta):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def whole(finish="stop", **message):
    return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": finish}]}


def answer(*pieces):
    made = Answer()
    for one in pieces:
        made.add(one)
    made.require_whole()
    return made


def calls(made):
    return [(one["id"], one["function"]["name"], one["function"]["arguments"]) for one in made.message()["tool_calls"]]


def test_texts_come_together():
    made = answer(piece(role="assistant"), piece(content="a"), piece(content="b"), piece("stop", content=None))
    assert made.message() == {"role": "assistant", "content": "ab"}
    assert made.finish == "stop"


def test_a_list_of_parts_is_a_text():
    made = answer(whole(content=[{"type": "text", "text": "a"}, {"type": "x"}, "b"]))
    assert made.message()["content"] == "ab"


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_keeps_its_name(name):
    made = answer(piece(**{name: "I "}), piece(**{name: "think"}), piece("stop", content="so"))
    assert made.message() == {"role": "assistant", "content": "so", name: "I think"}


def test_pieces_of_parallel_calls():
    made = answer(
        piece(tool_calls=[{"index": 0, "id": "a", "function": {"name": "bash", "arguments": ""}}]),
        piece(tool_calls=[{"index": 0, "function": {"arguments": '{"command":'}}]),
        piece(tool_calls=[{"index": 1, "id": "b", "function": {"name": "bash", "arguments": "{}"}}]),
        piece("tool_calls", tool_calls=[{"index": 0, "function": {"arguments": ' "ls"}'}}]),
    )
    assert calls(made) == [("a", "bash", '{"command": "ls"}'), ("b", "bash", "{}")]
    assert made.finish == "tool_calls"


def test_calls_that_are_all_numbered_0_are_told_apart_by_their_ids():
    one, two = ({"index": 0, "id": id, "function": {"name": "bash", "arguments": "{}"}} for id in "ab")
    assert calls(answer(piece(tool_calls=[one]), piece("stop", tool_calls=[two]))) == [
        ("a", "bash", "{}"),
        ("b", "bash", "{}"),
    ]


def test_calls_without_number_id_or_text():
    bare = {"function": {"name": "bash", "arguments": {"command": "ls"}}}
    made = answer(whole(tool_calls=[bare, bare]))
    assert calls(made) == [("call_0", "bash", '{"command": "ls"}'), ("call_1", "bash", '{"command": "ls"}')]
    assert made.finish == "tool_calls"


def test_an_id_is_given_once():
    one = {"id": "same", "function": {"name": "bash", "arguments": "{}"}}
    other = {**one, "id": "call_1"}
    assert [id for id, _, _ in calls(answer(whole(tool_calls=[one, one, other])))] == ["same", "call_1_", "call_1"]


def test_pieces_without_a_number_go_on():
    made = answer(
        piece(tool_calls=[{"id": "a", "function": {"name": "bash", "arguments": "{"}}]),
        piece("stop", tool_calls=[{"function": {"arguments": "}"}}]),
    )
    assert calls(made) == [("a", "bash", "{}")]


def test_broken_arguments_are_kept_as_they_are():
    made = answer(whole(tool_calls=[{"id": "a", "function": {"name": "bash", "arguments": '{"command": "ls'}}]))
    assert calls(made) == [("a", "bash", '{"command": "ls')]


@pytest.mark.parametrize(
    ("finish", "word"),
    [("stop", "stop"), ("eos", "stop"), ("length", "length"), ("max_tokens", "length"), ("tool_calls", "stop")],
)
def test_reasons_to_finish(finish, word):
    assert answer(whole(finish, content="x")).finish == word


def test_a_refusal_is_kept():
    made = answer(whole("content_filter", content=None, refusal="no"))
    assert made.message() == {"role": "assistant", "content": "", "refusal": "no"}
    assert made.finish == "content_filter"


@pytest.mark.parametrize("pieces", [[], [piece(content="x")], [piece("error")], [{"choices": []}], [{}]])
def test_half_an_answer_is_none(pieces):
    with pytest.raises(BrokenAnswerError):
        answer(*pieces)


@pytest.mark.parametrize("data", [None, 5, "x", [], {"choices": 5}, {"choices": [5]}, whole(tool_calls=["x"])])
def test_other_forms_are_broken(data):
    with pytest.raises(BrokenAnswerError):
        answer(data)


def test_an_endless_answer_is_broken(monkeypatch):
    monkeypatch.setattr(answers, "MOST_CHARS", 10)
    with pytest.raises(BrokenAnswerError, match="more than 10 characters"):
        answer(piece(content="x" * 6), piece(content="x" * 6))


def test_usage_as_it_is_told():
    told = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    assert answer(piece("stop"), {"choices": [], "usage": told}).usage([]) == Usage(100, 20, 64, 5)
    assert answer({**whole(), "usage": {**told, "prompt_tokens_details": None}}).usage([]) == Usage(100, 20, 0, 5)
    hit = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 99}
    assert answer({**whole(), "usage": hit}).usage([]).cached == 9


@pytest.mark.parametrize("told", [None, {}, {"prompt_tokens": -1, "completion_tokens": 2}, {"prompt_tokens": True}])
def test_what_is_not_told_is_estimated(told):
    assert answer({**whole(content="x" * 40), "usage": told}).usage(["x" * 396]) == Usage(101, 11, estimated=True)


NAMES = [
    "choices",
    "delta",
    "message",
    "content",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "id",
    "index",
    "finish_reason",
    "usage",
    "text",
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(VALUES, max_size=4))
def test_whatever_comes_it_is_an_answer_or_broken(pieces):
    try:
        made = answer(*pieces)
    except BrokenAnswerError:
        return
    message = made.message()
    json.dumps(message)
    ids = [call["id"] for call in message.get("tool_calls", ())]
    assert len(set(ids)) == len(ids)
    assert made.finish in ("stop", "tool_calls", "length", "content_filter")
    assert made.usage([]).tokens >= 0


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=9)), max_size=3), st.text())
def test_pieces_and_whole_say_the_same(wanted, content):
    names = [
        {"id": f"c{number}", "function": {"name": name or "f", "arguments": arguments}}
        for number, (name, arguments) in enumerate(wanted)
    ]
    pieces = [piece(content=char) for char in content]
    for number, call in enumerate(names):
        pieces.append(piece(tool_calls=[{**call, "index": number, "function": {**call["function"], "arguments": ""}}]))
        pieces += [
            piece(tool_calls=[{"index": number, "function": {"arguments": char}}])
            for char in call["function"]["arguments"]
        ]
    assert answer(*pieces, piece("stop")).message() == answer(whole(content=content, tool_calls=names)).message()
