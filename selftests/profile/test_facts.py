import pytest
import tomli

from pytest_otval.profile import PACKAGED, Profile, load_profile
from pytest_otval.profile.facts import Fact, fact_for, key_of, values_of

DOCUMENT = {
    "network": {"public": "host"},
    "mirrors": {"docker.io": "mirror.example.org"},
    "storage": {"home": {"variable": "HOME", "exports": "OT_STORAGE_HOME", "purpose": "settings", "files_hard": 5}},
}


def _fact(*keys, **other):
    return {"keys": keys, "source": "a user", "date": "2026-10", "verified": True, **other}


def _profile(*facts):
    return Profile(name="site", **DOCUMENT, facts=facts)


def test_the_longest_key_speaks():
    profile = _profile(_fact("storage.home"), _fact("storage.home.files_hard", 'mirrors."docker.io"', verified=False))
    assert fact_for(profile.facts, ("storage", "home", "variable")).verified
    assert not fact_for(profile.facts, ("storage", "home", "files_hard")).verified
    assert not fact_for(profile.facts, ("mirrors", "docker.io")).verified
    assert fact_for(profile.facts, ("network", "public")) is None


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ([_fact("storage.hom")], r"names 'storage.hom', which this file does not have"),
        ([_fact("storage.home.gb_hard")], "which this file does not have"),
        ([_fact("network.publi")], "which this file does not have"),
        ([_fact("network"), _fact("network")], "names 'network' twice"),
        ([_fact("network", '"network"')], "twice"),
        ([_fact("a = 1")], "no key as"),
        ([_fact("")], "no key as"),
        ([_fact("network", date="October")], "no date as"),
        ([_fact("network", date="2026-13")], "no date as"),
        ([_fact("network", source="")], "one line"),
        ([_fact()], "at least 1 item"),
    ],
)
def test_a_wrong_fact(facts, says):
    with pytest.raises(ValueError, match=says):
        _profile(*facts)


@pytest.mark.parametrize(("text", "key"), [("a", ("a",)), ("a.b-c", ("a", "b-c")), ('a."b.c".d', ("a", "b.c", "d"))])
def test_keys_are_written_as_in_toml(text, key):
    assert key_of(text) == key


def test_values_are_what_tables_hold():
    found = set(values_of({"a": {"b": [1], "c": {}}, "d": 1, "facts": [{}], "extends": "x"}))
    assert found == {("a", "b"), ("a", "c"), ("d",)}


@pytest.mark.parametrize("name", ["helma", "zih"])
def test_each_value_of_a_real_site_says_where_it_is_from(name):
    document = tomli.loads((PACKAGED / f"{name}.toml").read_text())
    facts: tuple[Fact, ...] = load_profile(name, PACKAGED.parent).facts
    silent = [".".join(key) for key in values_of(document) if fact_for(facts, key) is None]
    assert silent == []
