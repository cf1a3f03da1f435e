"""Each server has its own words for the same refusals."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.llm.failures import Kind, kind_of, refuses_format, said

OVERFLOWS = {
    "openai": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
    "openai, newer": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "vllm": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the"
    " messages, 1000 in the completion). Please reduce the length of the messages or completion.",
    "vllm, prompt": "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "vllm, total": "The prompt (total length 25938) is too long to fit into the model (context length 4096). Make sure"
    " that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens.",
    "vllm, passed": "You passed 5001 input tokens and requested 10 output tokens. However, the model's context length"
    " is only 4096 tokens.",
    "sglang": "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
    "sglang, count": "Requested token count exceeds the model's maximum context length of 4096 tokens.",
    "tgi": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
    "tgi, inputs": "Input validation error: `inputs` must have less than 1000 tokens. Given: 2000",
    "llama.cpp": "the request exceeds the available context size, try increasing it",
    "llama.cpp, newer": "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
    "llama-cpp-python": "Requested tokens (5000) exceed context window of 4096",
    "lm studio": "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with"
    " context length of only 4096 tokens",
    "openrouter": "This endpoint's maximum context length is 128000 tokens. However, you requested 150000 tokens.",
    "anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
    "anthropic, sum": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "mistral": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "groq": "Please reduce the length of the messages or completion.",
    "bedrock": "Input is too long for requested model.",
    "xai": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "moonshot": "Invalid request: Your request exceeded model token limit: 8192",
    "minimax": "invalid params, context window exceeds limit",
    "dashscope": "Range of input length should be [1, 30720]",
    "glm": "Prompt exceeds max length",
}
OTHERS = (
    "max_tokens must be at least 1, got 0",
    "Unknown parameter: 'context_window'",
    "tools[0].function.name is too long",
    "string too long. Expected a string with maximum length 40, but got a string with length 53 instead.",
    "The model `none` does not exist",
    "you exceeded your current quota, please check your plan",
    "'messages' must not be empty",
    "",
)


@pytest.mark.parametrize("name", OVERFLOWS)
@pytest.mark.parametrize("status", [400, 413, 422, 500, 0])
def test_a_conversation_that_is_too_long_is_known_by_its_text(name, status):
    assert kind_of(status, "", OVERFLOWS[name]) == Kind.OVERFLOW


@pytest.mark.parametrize("text", OTHERS)
def test_other_refusals_are_none(text):
    assert kind_of(400, "invalid_request_error", text) == Kind.AT_ONCE
    assert kind_of(500, "", text) == Kind.AGAIN


@pytest.mark.parametrize("code", ["context_length_exceeded", "exceed_context_size_error"])
def test_a_code_says_so_without_a_text(code):
    assert kind_of(400, code, "") == Kind.OVERFLOW


def test_too_large_for_a_proxy_is_too_long():
    assert kind_of(413, "", "<html>413 Request Entity Too Large</html>") == Kind.OVERFLOW


def test_limits_of_rate_pass_and_spent_accounts_do_not():
    assert kind_of(429, "rate_limit_exceeded", "Rate limit reached: tokens per min exceed the context") == Kind.AGAIN
    assert kind_of(429, "insufficient_quota", "You exceeded your current quota") == Kind.AT_ONCE


@given(st.sampled_from([401, 402, 403, 404]), st.text(), st.sampled_from([*OVERFLOWS.values(), *OTHERS]))
def test_who_may_not_ask_is_told_at_once(status, code, text):
    if code not in ("context_length_exceeded", "exceed_context_size_error"):
        assert kind_of(status, code, text) == Kind.AT_ONCE


@given(st.integers(500, 599), st.text(max_size=20))
def test_a_fault_of_the_server_is_asked_again(status, code):
    assert kind_of(status, code, "worker died") in (Kind.AGAIN, Kind.OVERFLOW)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["error", "code", "type", "message", "x"]), inner),
    max_leaves=8,
)


@given(JSON, st.integers(0, 999))
def test_any_body_has_a_meaning(body, status):
    code, text = said(body)
    assert len(code) <= 100 and len(text) <= 4000
    assert kind_of(status, code, text) in Kind


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"error": {"message": "no", "code": "bad", "type": "t"}}, ("bad", "no")),
        ({"message": "no", "type": "t"}, ("t", "no")),
        (
            {"error": {"code": 400, "type": "exceed_context_size_error", "message": "m"}},
            ("exceed_context_size_error", "m"),
        ),
        ({"error": "text"}, ("", "text")),
        ({"detail": [{"loc": ["body"]}]}, ("", "[{'loc': ['body']}]")),
        ("<html>", ("", "<html>")),
        (None, ("", "")),
    ],
)
def test_code_and_text_are_found_in_all_shapes(body, expected):
    assert said(body) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
        "This response_format type is unavailable now",
        "Invalid schema for response_format 'review': In context=(), 'minItems' is not permitted.",
        "Unrecognized request argument supplied: response_format",
        "JSON schema conversion failed: Unrecognized schema",
        "Failed to parse grammar",
        "This model does not support structured outputs.",
        "guided decoding is not supported",
    ],
)
def test_a_form_that_is_not_taken_is_known_by_its_text(text):
    assert refuses_format(400, text) and refuses_format(422, text)
    assert not refuses_format(500, text)


@pytest.mark.parametrize("text", [*OVERFLOWS.values(), *OTHERS])
def test_other_refusals_are_not_about_the_form(text):
    assert not refuses_format(400, text)


def test_a_huge_page_takes_no_time():
    code, text = said(json.loads(json.dumps({"error": {"message": "exceed " * 1_000_000}})))
    assert kind_of(400, code, text) == Kind.AT_ONCE
