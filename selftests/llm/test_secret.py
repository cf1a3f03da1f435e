"""A key shows nowhere."""

import base64
import copy
import json
import pickle
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.core import OtvalUsageError
from pytest_otval.llm.secret import NO_KEY, SHOWN, Secret

KEY = 'sk-canary/+"1234567890abcdef'


def test_no_text_of_it_has_it():
    secret = Secret(KEY)
    for text in (repr(secret), str(secret), f"{secret}", repr([secret]), json.dumps([1], default=str)):
        assert KEY not in text
    for write in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            write(secret)
    assert secret.reveal() == KEY


@pytest.mark.parametrize(
    "form", [KEY, json.dumps(KEY), quote(KEY), quote(KEY, safe=""), json.dumps({"h": f"Bearer {KEY}"})]
)
def test_it_is_found_in_other_notations(form):
    assert "canary" not in Secret(KEY).scrub(f"before {form} after")


@given(st.text(max_size=9), st.text(max_size=9))
def test_it_is_found_in_base64_whatever_stands_around_it(before, after):
    encoded = base64.b64encode(f"{before}{KEY}{after}".encode()).decode()
    left = Secret(KEY).scrub(encoded)
    assert SHOWN in left
    assert len(left) < len(encoded)


def test_it_is_found_deep_in_data():
    data = {"a": [{KEY: f"x{KEY}y"}, 1, None], "b": True}
    assert Secret(KEY).scrub_all(data) == {"a": [{SHOWN: f"x{SHOWN}y"}, 1, None], "b": True}


def test_placeholders_are_no_secret():
    assert Secret("EMPTY").scrub("EMPTY is EMPTY") == "EMPTY is EMPTY"
    assert NO_KEY.scrub("any text") == "any text"


def test_it_comes_from_the_named_variable_alone(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of-somebody-else")
    monkeypatch.setenv("MY_KEY", f" {KEY}\n")
    assert Secret.from_environment("MY_KEY") == Secret(KEY)
    assert Secret.from_environment("") == NO_KEY
    with pytest.raises(OtvalUsageError, match="OTHER_KEY is not set"):
        Secret.from_environment("OTHER_KEY")


@pytest.mark.parametrize("text", ["two words", "line\nend", "schlüssel-ä-123"])
def test_what_can_be_no_key_is_not_shown_either(monkeypatch, text):
    monkeypatch.setenv("MY_KEY", text)
    with pytest.raises(OtvalUsageError, match="MY_KEY holds no key") as caught:
        Secret.from_environment("MY_KEY")
    assert text not in str(caught.value)
