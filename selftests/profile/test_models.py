"""The sections about language models."""

import pytest
from pydantic import ValidationError

from pytest_otval.core import OtvalUsageError
from pytest_otval.profile import ModelSection, load_profile


def test_a_models_name_may_have_a_slash(tmp_path, monkeypatch):
    monkeypatch.delenv("OT_WORKSPACE", raising=False)
    (tmp_path / "clusters").mkdir()
    file = tmp_path / "clusters" / "site.toml"
    file.write_text('[models."a/b"]\nbase_url = "https://x/v1/"\n[models."a/b".request]\nmax_tokens = 5\n')
    section = load_profile("site", tmp_path).models["a/b"]
    assert section.base_url == "https://x/v1"
    assert section.request == {"max_tokens": 5}
    file.write_text('[models."a/b"]\nkey_varable = "X"\n')
    with pytest.raises(OtvalUsageError, match=r"models.*key_varable.*did you mean 'key_variable'"):
        load_profile("site", tmp_path)


@pytest.mark.parametrize(
    "address",
    ["x", "ftp://x/v1", "http://", "https://me:secret@x/v1", "http://x/v1?key=secret", "http://x:y/v1", "http://a b"],
)
def test_an_address_that_is_none_is_told_without_what_it_may_hold(address):
    with pytest.raises(ValidationError) as caught:
        ModelSection(base_url=address)
    assert "must be http(s)://HOST" in caught.value.errors()[0]["msg"]
    assert "secret" not in caught.value.errors()[0]["msg"]


@pytest.mark.parametrize("key", ["sk-proj-1234", "hf_abcdef", "two words"])
def test_a_key_in_place_of_its_variable_is_told_without_it(key):
    with pytest.raises(ValidationError) as caught:
        ModelSection(key_variable=key)
    assert key not in caught.value.errors()[0]["msg"]


@pytest.mark.parametrize("values", [{"usd_in": 1}, {"usd_out": 1}, {"request": {"stream": True}}, {"concurrency": 0}])
def test_what_cannot_be_meant(values):
    with pytest.raises(ValidationError):
        ModelSection(**values)
