"""Whose log-in goes where."""

import base64
import json

import pytest

from pytest_otval.images.credentials import Credentials, Login
from pytest_otval.images.reference import parse_reference

HUB = parse_reference("debian:12")


def encoded(user, password):
    return base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Write Apptainer's store."""
    monkeypatch.setenv("APPTAINER_CONFIGDIR", str(tmp_path))
    for name in ("APPTAINER_DOCKER_USERNAME", "APPTAINER_DOCKER_PASSWORD", "DOCKER_USERNAME", "DOCKER_PASSWORD"):
        monkeypatch.delenv(name, raising=False)

    def write(auths, name="docker-config.json"):
        (tmp_path / name).write_text(auths if isinstance(auths, str) else json.dumps({"auths": auths}))

    return write


@pytest.mark.parametrize(
    "key", ["https://index.docker.io/v1/", "docker.io", "index.docker.io", "https://registry-1.docker.io/v2/"]
)
def test_hub_has_many_names(store, key):
    store({key: {"auth": encoded("me", "se:cret")}})
    assert Credentials().login(HUB) == Login("me", "se:cret")
    assert Credentials().login(parse_reference("ghcr.io/a:1")) is None


def test_repository_beats_its_host(store):
    store({"ghcr.io": {"username": "all", "password": "p"}, "ghcr.io/own/app": {"auth": encoded("one", "p")}})
    assert Credentials().login(parse_reference("ghcr.io/own/app:1")) == Login("one", "p")
    assert Credentials().login(parse_reference("ghcr.io/own/other:1")) == Login("all", "p")


def test_docker_store_is_read_where_apptainer_has_none(store):
    store({"ghcr.io": {"auth": encoded("me", "p")}}, "config.json")
    assert Credentials().login(parse_reference("ghcr.io/a:1")) == Login("me", "p")
    store({})
    assert Credentials().login(parse_reference("ghcr.io/a:1")) is None


def test_store_is_in_the_home_folder(store, tmp_path, monkeypatch):
    monkeypatch.delenv("APPTAINER_CONFIGDIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".apptainer").mkdir()
    store({"docker.io": {"auth": encoded("me", "p")}}, ".apptainer/docker-config.json")
    assert Credentials().login(HUB) == Login("me", "p")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"auths": []}',
        '{"auths": {"docker.io": 3}}',
        '{"auths": {"docker.io": {"auth": "%%%"}}}',
        '{"auths": {"docker.io": {"auth": "/w=="}}}',
        '{"auths": {"docker.io": {"auth": 3}}}',
        '{"auths": {"docker.io": {}}}',
    ],
)
def test_broken_store_is_none(store, text):
    store(text)
    assert Credentials().login(HUB) is None


@pytest.mark.parametrize("prefix", ["APPTAINER_DOCKER_", "DOCKER_"])
def test_environment_wins_for_the_hosts_it_is_for(store, monkeypatch, prefix):
    store({"docker.io": {"auth": encoded("kept", "p")}, "quay.io": {"auth": encoded("kept", "p")}})
    monkeypatch.setenv(f"{prefix}USERNAME", "given")
    assert Credentials().login(HUB) == Login("kept", "p"), "half a log-in is none"
    monkeypatch.setenv(f"{prefix}PASSWORD", "p")
    assert Credentials().login(HUB) == Login("given", "p")
    assert Credentials().login(parse_reference("quay.io/a:1")) == Login("kept", "p")
    assert Credentials(["quay.io"]).login(parse_reference("quay.io/a:1")) == Login("given", "p")
    assert Credentials([]).login(HUB) == Login("kept", "p")


def test_login_shows_nothing_of_itself():
    assert "canary" not in repr(Login("canary", "canary"))
    assert Login("a", "b").header == "Basic YTpi"
