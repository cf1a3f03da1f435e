"""Weights from a hub on loopback."""

import re
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from pytest_otval import hub as hub_module
from pytest_otval.__main__ import main
from pytest_otval.core import OtvalUsageError
from pytest_otval.llm import weights as module
from pytest_otval.llm.weights import RECORD, all_weights, find_weights, read_weights, staged
from selftests.hub import OF_UPLOADS, TOKEN

pytestmark = OF_UPLOADS

NAME = "me/mine"
LARGE = bytes(range(256)) * 100
FILES = {
    "config.json": b"{}",
    "model-1.safetensors": LARGE,
    "model-2.safetensors": LARGE[::-1],
    "pytorch_model.bin": LARGE,
    ".gitattributes": b"x",
    "original/consolidated.pth": LARGE,
    "a file.txt": b"x",
}


@pytest.fixture
def hub(any_hub, monkeypatch, tmp_path):
    monkeypatch.setattr(hub_module, "BLOCK_BYTES", 5000)
    monkeypatch.setenv("OT_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("OT_MODELS", str(tmp_path / "weights"))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    any_hub.add(f"models/{NAME}", dict(FILES))
    return any_hub


@pytest.fixture
def models(tmp_path):
    return tmp_path / "weights"


def test_what_a_server_needs_is_brought_and_found_again(hub, models, capsys):
    assert main(["models", "download", NAME]) == 0
    (found,) = all_weights(models)
    assert found.whole and found.revision == hub.repositories[f"models/{NAME}"].sha()
    assert set(found.files) == {"config.json", "model-1.safetensors", "model-2.safetensors"}
    folder = models / f"me--mine@{found.revision}"
    assert {path.name for path in folder.iterdir()} == {*found.files, RECORD}
    assert (folder / "model-1.safetensors").read_bytes() == LARGE
    assert f'me/mine is here: revision = "{found.revision}"' in capsys.readouterr().out
    hub.asked.clear()
    assert main(["models", "download", f"{NAME}@{found.revision}"]) == 0
    assert not any("/cdn" in path for _, path, _ in hub.asked)


def test_a_repository_without_safetensors_is_taken_as_it_is(hub, models):
    hub.add("models/me/gguf", {"a.gguf": LARGE, "README.md": b"x"})
    assert main(["models", "download", "me/gguf"]) == 0
    assert set(find_weights(models, "me/gguf", None).files) == {"a.gguf", "README.md"}


def test_a_revision_is_the_one_that_was_asked_for(hub, models):
    repository = hub.repositories[f"models/{NAME}"]
    first = repository.sha()
    repository.revisions.append({"config.json": b"{ }"})
    assert main(["models", "download", f"{NAME}@{first}"]) == 0
    assert main(["models", "download", NAME]) == 0
    assert {one.revision for one in all_weights(models)} == {first, repository.sha()}
    assert find_weights(models, NAME, first).files["config.json"].bytes == 2
    with pytest.raises(OtvalUsageError, match="has 2 revisions of me/mine"):
        find_weights(models, NAME, None)


def test_a_download_goes_on_where_it_ended(hub, models, capsys):
    hub.fails("/cdn/", cut=10, times=1000, after=3)
    assert main(["models", "download", NAME]) == 1
    (half,) = all_weights(models)
    assert not half.whole
    with pytest.raises(OtvalUsageError, match="me/mine is not whole"):
        find_weights(models, NAME, None)
    assert main(["models", "verify"]) == 1
    assert "not whole" in capsys.readouterr().out
    hub.faults.clear()
    hub.asked.clear()
    assert main(["models", "download", NAME]) == 0
    ranges = [headers["range"] for method, path, headers in hub.asked if method == "GET" and "/cdn" in path]
    assert ranges[0] != "bytes=0-4999"
    assert main(["models", "verify", NAME]) == 0


def test_what_came_wrong_is_not_kept(hub, models, capsys):
    repository = hub.repositories[f"models/{NAME}"]
    sha = module.hashlib.sha256(LARGE).hexdigest()
    hub.blobs[sha] = LARGE[:-1] + b"!"
    assert main(["models", "download", NAME]) == 4
    assert "model-1.safetensors came with other content than the hub says" in capsys.readouterr().err
    folder = models / f"me--mine@{repository.sha()}"
    assert {path.name for path in folder.iterdir()} == {"config.json", RECORD}


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("me/none", "shows no model repository me/none"),
        ("me/gated", "me/gated is gated: ask for access on its page, and set HF_TOKEN"),
        ("none", r"none is no model of the profile with a repository, and no ORGANISATION/NAME\[@COMMIT\]"),
        ("me/mine@main", "no ORGANISATION/NAME"),
        (f"me/mine@{'0' * 40}", "has no such revision of me/mine"),
        ("me/empty", "me/empty has no files"),
    ],
)
def test_what_cannot_be_brought_is_told_in_one_line(hub, capsys, model, said):
    hub.add("models/me/gated", dict(FILES), gated=True)
    hub.add("models/me/empty", {})
    assert main(["models", "download", model]) == 4
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(said, error)


def test_a_token_opens_a_gate(hub, monkeypatch, models):
    hub.add("models/me/gated", dict(FILES), gated=True)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert main(["models", "download", "me/gated"]) == 0
    assert TOKEN not in (models / find_weights(models, "me/gated", None).name / RECORD).read_text()


def test_no_room_is_told_before_anything_comes(hub, capsys, monkeypatch):
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    assert main(["models", "download", NAME]) == 4
    assert "OT_MODELS names another folder" in capsys.readouterr().err
    assert not any("/cdn" in path for _, path, _ in hub.asked)


def test_damage_is_found_without_the_hub(hub, models, capsys, monkeypatch):
    assert main(["models", "download", NAME]) == 0
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main(["models", "verify"]) == 0
    (found,) = all_weights(models)
    folder = models / found.name
    (folder / "config.json").unlink()
    (folder / "model-1.safetensors").write_bytes(LARGE[:-1])
    (folder / "model-2.safetensors").write_bytes(LARGE)
    assert main(["models", "verify"]) == 1
    said = capsys.readouterr().err
    assert "config.json: No such file" in said
    assert "model-1.safetensors: 25599 bytes in place of 25600" in said
    assert "model-2.safetensors: other content" in said
    assert main(["models", "verify", "me/none"]) == 4


def test_a_list_tells_what_is_here(hub, capsys, models):
    assert main(["models", "list"]) == 0
    assert main(["models", "download", NAME]) == 0
    capsys.readouterr()
    assert main(["models", "list"]) == 0
    assert f"me/mine@{all_weights(models)[0].revision[:12]}  3 files  0.00 GB\n" == capsys.readouterr().out
    assert main(["models", "list", "--json"]) == 0
    assert '"whole": true' in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"repository": "a/b", "revision": "c", "files": {"../../x": {"bytes": 1, "sha256": ""}}, "whole": true}',
        '{"repository": "other/b", "revision": "c", "files": {}, "whole": true}',
        '{"repository": "a/b", "revision": "c", "files": {"x": 1}, "whole": true}',
    ],
)
def test_a_record_that_is_none_is_no_model(tmp_path, text):
    folder = tmp_path / "a--b@c"
    folder.mkdir()
    (folder / RECORD).write_text(text)
    assert read_weights(folder) is None
    assert all_weights(tmp_path) == []


def test_a_copy_on_the_node_is_made_once_and_is_right(hub, models, tmp_path):
    assert main(["models", "download", NAME]) == 0
    (found,) = all_weights(models)
    node = tmp_path / "node"
    folder = staged(models, found, node)
    assert (folder / "model-2.safetensors").read_bytes() == LARGE[::-1]
    (models / found.name / "config.json").write_bytes(b"[]")
    assert staged(models, found, node) == folder
    (folder / RECORD).unlink()
    with pytest.raises(OtvalUsageError, match=r"config\.json is damaged: run .*models verify"):
        staged(models, found, node)


def test_a_killed_download_goes_on(hub, models, tmp_path):
    """Its part is in the folder, and nobody holds its lock."""
    hub.fails("/cdn/", cut=4000, times=1000, after=1)
    argv = [sys.executable, "-m", "pytest_otval", "models", "download", NAME]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as killed:
        while not hub.failed.wait(0.01):
            assert killed.poll() is None
        killed.kill()
    hub.faults.clear()
    assert main(["models", "download", NAME]) == 0
    assert main(["models", "verify"]) == 0
