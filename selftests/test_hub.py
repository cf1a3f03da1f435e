"""The hub's client against a hub on loopback."""

import os
import subprocess
import sys
import time

import pytest

from pytest_otval import hub as module
from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.hub import Hub, HubFile
from selftests.hub import OF_UPLOADS, TOKEN

pytestmark = OF_UPLOADS

NAME = "me/mine"
LARGE = bytes(range(256)) * 100


@pytest.fixture
def hub(any_hub, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 5000)
    any_hub.add(f"datasets/{NAME}", {"README.md": b"# mine", "folder/small": b"small", "folder/large": LARGE})
    return any_hub


@pytest.fixture
def waited(monkeypatch):
    seconds = []
    monkeypatch.setattr(time, "sleep", seconds.append)
    return seconds


def test_files_of_a_folder_page_by_page(hub):
    hub.page = 1
    found = Hub(NAME).files("folder")
    assert found.keys() == {"small", "large"}
    assert found["small"] == HubFile(5)
    assert found["large"].bytes == len(LARGE) and len(found["large"].sha256) == 64
    assert Hub(NAME).files("none") == {}


def test_files_are_of_the_state_at_opening(hub):
    opened = Hub(NAME)
    hub.repositories[f"datasets/{NAME}"].revisions.append({"folder/small": b"other"})
    assert opened.read("folder/small", 10) == b"small"
    assert Hub(NAME).read("folder/small", 10) == b"other"
    with pytest.raises(OtvalUsageError, match="more than 3 bytes"):
        opened.read("folder/small", 3)


@pytest.mark.parametrize("there", [0, 1, 5000, 25600, 30000])
def test_a_download_goes_on_where_it_ended(hub, tmp_path, there):
    part = tmp_path / "part"
    part.write_bytes((LARGE * 2)[:there])
    Hub(NAME).fetch("folder/large", len(LARGE), part)
    assert part.read_bytes() == LARGE
    sent = [headers["range"] for method, path, headers in hub.asked if method == "GET" and path.startswith("/cdn")]
    begun = there if there <= len(LARGE) else 0
    assert sent == [f"bytes={at}-{min(at + 5000, len(LARGE)) - 1}" for at in range(begun, len(LARGE), 5000)]


def test_a_body_that_is_cut_is_asked_for_again(hub, tmp_path, waited):
    hub.fails("/cdn/", cut=1234)
    Hub(NAME).fetch("folder/large", len(LARGE), tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == LARGE
    assert waited


def test_what_came_before_the_end_of_patience_is_kept(hub, tmp_path, waited):
    Hub(NAME).fetch("folder/large", 10000, tmp_path / "part")
    hub.fails("/cdn/", cut=10, times=1000)
    with pytest.raises(Conclusion, match=r"RemoteProtocolError.*try again later") as caught:
        Hub(NAME).fetch("folder/large", len(LARGE), tmp_path / "part")
    assert caught.value.reason == "network-unreachable"
    assert (tmp_path / "part").read_bytes() == LARGE[:10000]


@pytest.mark.parametrize("part", ["/api/datasets/me/mine", "/tree/", "/resolve/", "/cdn/"])
def test_it_waits_as_long_as_the_hub_asks(hub, tmp_path, waited, part):
    hub.fails(part, status=429, headers={"Retry-After": "7"})
    hub.fails(part, status=503)
    opened = Hub(NAME)
    assert opened.files("folder").keys() == {"small", "large"}
    opened.fetch("folder/large", len(LARGE), tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == LARGE
    assert len(waited) == 2
    assert waited[0] >= 7


def test_it_never_waits_longer_than_a_minute(hub, waited):
    hub.fails("/api/datasets/me/mine", status=429, headers={"Retry-After": "9999"})
    Hub(NAME)
    assert waited == [60]


def test_a_file_that_is_not_there_is_named(hub):
    with pytest.raises(OtvalUsageError, match=r"has no file folder/none\\n in me/mine.*: .*run this again"):
        Hub(NAME).read("folder/none\n", 10)


def test_a_repository_that_goes_away_is_told_as_one(hub):
    opened = Hub(NAME)
    del hub.repositories[f"datasets/{NAME}"]
    with pytest.raises(OtvalUsageError, match="shows no dataset repository me/mine"):
        opened.read("folder/small", 10)


@pytest.mark.parametrize("address", ["hub.example", "file:///etc", "https://", "ftp://hub.example"])
def test_an_address_that_is_none_is_told_at_once(hub, monkeypatch, waited, address):
    monkeypatch.setenv("HF_ENDPOINT", address)
    with pytest.raises(OtvalUsageError, match="HF_ENDPOINT is no address of a hub: write it as https://HOST"):
        Hub(NAME)
    assert waited == []


def test_a_token_goes_to_the_hub_and_nowhere_else(hub, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    Hub(NAME).fetch("folder/large", len(LARGE), tmp_path / "part")
    told = {headers["host"]: "authorization" in headers for _, _, headers in hub.asked}
    assert told == {f"127.0.0.1:{hub.port}": True, f"localhost:{hub.port}": False}


def test_a_token_that_is_not_named_is_not_used(hub, tmp_path, monkeypatch):
    """As ``hf auth login`` leaves it in a home."""
    from huggingface_hub import constants

    (tmp_path / "token").write_text("hf_of_the_home")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    Hub(NAME).files("folder")
    assert not any("hf_of_the_home" in str(headers) for _, _, headers in hub.asked)


@pytest.mark.parametrize(
    ("name", "token", "said"),
    [
        ("me/none", "", "shows no dataset repository me/none"),
        ("me/none", TOKEN, "shows no dataset repository me/none"),
        ("me/private", "", "shows no dataset repository me/private"),
        ("not a name", "", "no name of a repository"),
        ("../../etc", "", "no name of a repository"),
    ],
)
def test_what_cannot_be_opened_is_told_in_one_line(hub, monkeypatch, name, token, said):
    hub.add("datasets/me/private", {}, private=True)
    monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(OtvalUsageError, match=said) as caught:
        Hub(name)
    assert "\n" not in str(caught.value) and TOKEN not in str(caught.value)


def test_a_gated_repository(hub, monkeypatch, tmp_path):
    hub.add("datasets/me/gated", {"a": LARGE}, gated=True)
    with pytest.raises(OtvalUsageError, match="is gated: ask for access"):
        Hub("me/gated").fetch("a", len(LARGE), tmp_path / "part")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    Hub("me/gated").fetch("a", len(LARGE), tmp_path / "part")


def test_no_hub_at_all(monkeypatch, hub, waited):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(Conclusion, match=r"ConnectError.*try again later"):
        Hub(NAME)


@pytest.mark.parametrize("name", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_offline_nothing_is_asked(hub, monkeypatch, name):
    monkeypatch.setenv(name, "1")
    with pytest.raises(OtvalUsageError, match=f"{name} is set"):
        Hub(NAME)
    assert hub.asked == []


def test_an_upload_is_one_commit(hub, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    files = {"new/large": LARGE + b"!", "new/small": b"s"}
    for path, data in files.items():
        (tmp_path / path.replace("/", "-")).write_bytes(data)
    paths = {path: tmp_path / path.replace("/", "-") for path in files}
    Hub(NAME).upload(paths, "two files")
    repository = hub.repositories[f"datasets/{NAME}"]
    assert len(repository.revisions) == 2
    assert repository.files.items() >= files.items()
    Hub(NAME).upload(paths, "again")
    assert hub.count("PUT") == 1, "what the hub has was sent again"


def test_an_upload_that_fails_can_be_done_again(hub, monkeypatch, tmp_path, waited):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    (tmp_path / "large").write_bytes(LARGE + b"?")
    hub.fails("/cdn/", method="PUT", status=500, times=100)
    with pytest.raises(Conclusion, match="HTTP 500"):
        Hub(NAME).upload({"large": tmp_path / "large"}, "x")
    assert len(hub.repositories[f"datasets/{NAME}"].revisions) == 1
    hub.faults.clear()
    hub.fails("/cdn/", method="PUT", status=500)
    Hub(NAME).upload({"large": tmp_path / "large"}, "x")
    assert hub.repositories[f"datasets/{NAME}"].files["large"] == LARGE + b"?"


def test_who_may_not_write_is_told_so(hub, tmp_path):
    (tmp_path / "a").write_bytes(b"a")
    with pytest.raises(OtvalUsageError, match=r"refuses this for me/mine \(HTTP 403\): set HF_TOKEN"):
        Hub(NAME).upload({"a": tmp_path / "a"}, "x")


def test_without_the_library_it_says_what_to_do():
    script = (
        "import sys; sys.modules['huggingface_hub'] = None\n"
        "from pytest_otval.hub import Hub\nfrom pytest_otval.core import OtvalUsageError\n"
        "try: Hub('a/b')\nexcept OtvalUsageError as error: print(error)"
    )
    env = {name: value for name, value in os.environ.items() if "OFFLINE" not in name}
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=env)
    assert said.stdout == "huggingface_hub is not installed: run ./setup.sh without --minimal\n"
