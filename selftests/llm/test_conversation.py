"""What is sent of a conversation."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.llm.conversation import outgoing

ASSISTANT = {
    "role": "assistant",
    "content": "",
    "reasoning_content": "hm",
    "extra": {"cost": 1},
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls'}}],
}


def test_what_agents_note_for_themselves_is_not_sent():
    (sent,) = outgoing([ASSISTANT], reasoning_back=False)
    assert sent.keys() == {"role", "content", "tool_calls"}


def test_reasoning_goes_back_only_where_the_profile_says_so():
    (sent,) = outgoing([ASSISTANT], reasoning_back=True)
    assert sent["reasoning_content"] == "hm"


def test_broken_arguments_of_an_earlier_answer_are_sent_as_json():
    (sent,) = outgoing([ASSISTANT], reasoning_back=False)
    assert json.loads(sent["tool_calls"][0]["function"]["arguments"]) == {"malformed": '{"command": "ls'}
    assert ASSISTANT["tool_calls"][0]["function"]["arguments"] == '{"command": "ls'


@given(st.text(alphabet=st.characters(codec=None)))
def test_any_output_of_a_command_can_be_sent(text):
    sent = outgoing([{"role": "tool", "content": text, "tool_call_id": "a"}], reasoning_back=False)
    json.dumps(sent, ensure_ascii=False).encode()
