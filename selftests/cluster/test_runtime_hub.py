"""``runtime publish`` and ``runtime download`` against a hub on loopback."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from pytest_otval import hub as module
from pytest_otval.__main__ import main
from pytest_otval.images.locks import sweep_half
from pytest_otval.runtimes.record import ROOT, Reference, parse_record, records, write_record, write_reference
from pytest_otval.runtimes.store import Runtimes
from selftests.conftest import REPOSITORY
from selftests.fakes import make_task
from selftests.hub import OF_UPLOADS, TOKEN
from selftests.kills import killed_at_each_step
from selftests.runtimes.made import put, write_squashfs

pytestmark = OF_UPLOADS

REPO = "me/runtimes"
KEY = f"datasets/{REPO}"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return a cache of a name, and let commands use it from now on."""

    def use(name):
        monkeypatch.setenv("OT_RUNTIME_CACHE", str(tmp_path / name))
        return Runtimes(tmp_path / name)

    (tmp_path / "workspace" / "datasets").mkdir(parents=True)
    monkeypatch.setenv("OT_WORKSPACE", str(tmp_path / "workspace"))
    monkeypatch.chdir(tmp_path)
    return use


@pytest.fixture
def hub(any_hub, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    any_hub.add(KEY)
    return any_hub


def whole(cache, name="tools", text="x"):
    """Put a runtime into a cache whose manifest knows its files."""
    made = put(cache, name, text)
    runtime = replace(made, files={"file": hashlib.sha256(text.encode()).hexdigest()})
    write_record(cache.cache, runtime)
    return runtime


def names(cache):
    return sorted(path.name for path in cache.cache.iterdir()) if cache.cache.exists() else []


def offer(hub, cache, *runtimes):
    """Publish without any command."""
    files = {path.name: path.read_bytes() for path in cache.cache.iterdir()}
    hub.add(KEY, {f"runtimes/{name}": data for name, data in files.items() if name[:64] in runtimes or not runtimes})


def test_what_is_published_can_be_downloaded(hub, cache, capsys):
    mine = cache("mine")
    runtimes = [whole(mine, "one", "1"), whole(mine, "two", "2")]
    assert main(["runtime", "publish", REPO]) == 0
    assert capsys.readouterr().out.count("published") == 2
    assert main(["runtime", "publish", REPO]) == 0
    assert capsys.readouterr().out.count("is there") == 2
    assert hub.count("PUT") == 2
    theirs = cache("theirs")
    assert main(["runtime", "download", REPO]) == 0
    assert capsys.readouterr().out.count("downloaded") == 2
    assert list(records(theirs.cache)) == runtimes
    assert names(theirs) == names(mine)
    assert [theirs.fault(one) for one in runtimes] == ["", ""]
    assert main(["runtime", "download", REPO]) == 0
    assert capsys.readouterr().out.count("is there") == 2


def test_only_what_is_named(hub, cache, tmp_path):
    mine = cache("mine")
    one, two, three = whole(mine, "one", "1"), whole(mine, "two", "2"), whole(mine, "three", "3")
    assert main(["runtime", "publish", REPO, "one", two.checksum[:10]]) == 0
    assert {path[9:73] for path in hub.repositories[KEY].files} == {one.checksum, two.checksum}
    offer(hub, mine)
    theirs = cache("theirs")
    assert main(["runtime", "download", REPO, three.id, one.checksum]) == 0
    assert {found.checksum for found in records(theirs.cache)} == {one.checksum, three.checksum}
    task = make_task(tmp_path)
    write_reference(task.path / "tests" / "ot-verifier-runtime.json", Reference.of(two))
    tasks = cache("tasks")
    assert main(["runtime", "download", REPO, "--for", str(tmp_path / "set")]) == 0
    assert [found.checksum for found in records(tasks.cache)] == [two.checksum]


def test_what_the_hub_does_not_have_is_told(hub, cache, tmp_path, capsys):
    mine = cache("mine")
    runtime, other = whole(mine, "one", "1"), whole(mine, "other", "2")
    task = make_task(tmp_path)
    write_reference(task.path / "tests" / "ot-verifier-runtime.json", Reference.of(runtime))
    assert main(["runtime", "download", REPO]) == 4
    assert f"{REPO} has no whole runtime in runtimes/" in capsys.readouterr().err
    offer(hub, mine, other.checksum)
    assert main(["runtime", "download", REPO, "none", "--for", str(task.path)]) == 1
    said = capsys.readouterr().err
    assert f"{REPO} has no {runtime.checksum[:12]}, which a task names" in said
    assert f"{REPO} has no runtime none" in said
    assert main(["runtime", "publish", REPO, "none"]) == 1
    assert "has no runtime none" in capsys.readouterr().err
    cache("empty")
    assert main(["runtime", "publish", REPO]) == 4
    assert len(hub.repositories[KEY].revisions) == 1


def test_a_download_that_lacks_only_its_manifest_is_not_done_again(hub, cache):
    mine = cache("mine")
    runtime = whole(mine)
    offer(hub, mine)
    theirs = cache("theirs")
    assert main(["runtime", "download", REPO]) == 0
    (theirs.cache / f"{runtime.checksum}.json").unlink()
    asked = hub.count("GET", "/cdn/")
    assert main(["runtime", "download", REPO]) == 0
    assert hub.count("GET", "/cdn/") == asked
    assert theirs.fault(runtime) == "" and names(theirs) == names(mine)


def test_what_tasks_cannot_tell_is_warned_of(hub, cache, tmp_path, capsys):
    mine = cache("mine")
    one = whole(mine, "one", "1")
    offer(hub, mine)
    task = make_task(tmp_path, files={"setup_files/ot-task-runtime.json": "{"})
    write_reference(task.path / "tests" / "ot-verifier-runtime.json", Reference.of(one))
    theirs = cache("theirs")
    assert main(["runtime", "download", REPO, "--for", str(task.path)]) == 0
    assert list(records(theirs.cache)) == [one], "what the task's other file names came nevertheless"
    assert "warning: " in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["runtime", "download", REPO, "--for", str(tmp_path / "empty")]) == 4
    said = capsys.readouterr().err
    assert "there is no task" in said and "would go" not in said


def test_what_is_damaged_is_not_published(hub, cache, capsys):
    mine = cache("mine")
    right, wrong = whole(mine, "right", "1"), whole(mine, "wrong", "2")
    mine.file(wrong).chmod(0o644)
    mine.file(wrong).write_bytes(b"x" * wrong.bytes)
    assert main(["runtime", "publish", REPO]) == 1
    assert "does not match its checksum: not published" in capsys.readouterr().err
    assert {path[9:73] for path in hub.repositories[KEY].files} == {right.checksum}


def other_bytes(files, runtime):
    files[f"runtimes/{runtime.checksum}.sqfs"] = bytes(runtime.bytes)


def cut_short(files, runtime):
    files[f"runtimes/{runtime.checksum}.sqfs"] = files[f"runtimes/{runtime.checksum}.sqfs"][:-1]


def no_manifest(files, runtime):
    files[f"runtimes/{runtime.checksum}.json"] = b"\xff[" * 1000


def changed(**values):
    def change(files, runtime):
        path = f"runtimes/{runtime.checksum}.json"
        files[path] = json.dumps(json.loads(files[path]) | values).encode()

    return change


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (other_bytes, "does not match its checksum: removed"),
        (cut_short, "in place of"),
        (no_manifest, "is no manifest of a runtime"),
        (changed(path="/opt:lowerdir=/etc"), "is no manifest of a runtime"),
        (changed(id="../../x-000000000000"), "is no manifest of a runtime"),
        (changed(python="../../bin/sh"), "is no manifest of a runtime"),
        (changed(path="/opt/otval/runtimes/other"), "has no folder"),
        (changed(files={}), "are not those of its manifest: removed"),
    ],
)
def test_what_is_wrong_never_gets_into_the_cache(hub, cache, capsys, spoil, said):
    mine = cache("mine")
    wrong, right = whole(mine, "wrong", "1" * 5000), whole(mine, "right", "2")
    offer(hub, mine)
    spoil(hub.repositories[KEY].files, wrong)
    hub.blobs |= {hashlib.sha256(data).hexdigest(): data for data in hub.repositories[KEY].files.values()}
    theirs = cache("theirs")
    assert main(["runtime", "download", REPO]) == 1
    told = capsys.readouterr()
    assert said in told.err and told.err.count("\n") == 1
    assert list(records(theirs.cache)) == [right]
    assert names(theirs) == [f"{right.checksum}.json", f"{right.checksum}.sqfs"]


def test_a_squashfs_with_more_than_its_folder_is_refused(hub, cache, capsys, tmp_path):
    """As the agent's layer it would change the image itself."""
    mine = cache("mine")
    runtime = whole(mine)
    made = write_squashfs(tmp_path / "more", {f"{ROOT}/tools/file": "x", "/bin/bash": "evil"})
    data = made.read_bytes()
    more = replace(runtime, checksum=hashlib.sha256(data).hexdigest(), bytes=len(data))
    write_record(mine.cache, more)
    mine.file(more).write_bytes(data)
    offer(hub, mine, more.checksum)
    assert names(cache("theirs")) == []
    assert main(["runtime", "download", REPO]) == 1
    assert f"has more than the folder {ROOT}/tools: removed" in capsys.readouterr().err
    assert names(cache("theirs")) == []


def test_offline_nothing_is_asked(hub, cache, capsys, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    whole(cache("mine"))
    for action in ("publish", "download"):
        assert main(["runtime", action, REPO]) == 4
        assert capsys.readouterr().err == (
            "error: HF_HUB_OFFLINE is set, so the hub is not asked: unset it where there is a network\n"
        )
    assert hub.asked == []


def test_a_token_is_never_shown(hub, cache, capsys, monkeypatch):
    whole(cache("mine"))
    monkeypatch.setenv("HF_TOKEN", "hf_that_may_not")
    assert main(["runtime", "publish", REPO]) == 4
    hub.fails("/api/", status=500, times=100)
    assert main(["runtime", "publish", REPO]) == 1
    told = capsys.readouterr()
    assert "HTTP 403" in told.err and "HTTP 500" in told.err
    assert "hf_that_may_not" not in told.out + told.err


def test_a_cache_that_cannot_be_written(hub, cache, capsys, tmp_path):
    whole(mine := cache("mine"))
    offer(hub, mine)
    (tmp_path / "file").touch()
    cache("file")
    assert main(["runtime", "download", REPO]) == 4
    assert "cannot be written" in capsys.readouterr().err


def test_a_download_that_is_killed_goes_on(hub, cache, capsys, tmp_path):
    mine = cache("mine")
    runtime = whole(mine, text="".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(256)) * 3)
    offer(hub, mine)
    theirs = cache("theirs")
    part = theirs.part(runtime.checksum)
    # The third block never comes: the hub asks for patience, and the command waits.
    script = (
        "import sys, pytest_otval.hub as hub; hub.BLOCK_BYTES = 1000\n"
        "from pytest_otval.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    argv = [sys.executable, "-c", script, "runtime", "download", REPO]
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    hub.fails("/cdn/", headers={"Retry-After": "60"}, status=429, after=2)
    process = subprocess.Popen(argv, env=env, cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert hub.failed.wait(60)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert part.stat().st_size == 2000
    assert list(records(theirs.cache)) == []
    assert main(["runtime", "download", REPO]) == 0
    ranges = [headers["range"] for _, path, headers in hub.asked if path.startswith("/cdn")]
    assert ranges[-1].startswith("bytes=2000-")
    assert theirs.fault(runtime) == "" and not part.exists()


def test_a_download_that_is_killed_anywhere_leaves_nothing_half(hub, cache, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 2000)
    mine = cache("mine")
    runtime = whole(mine, text="".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(256)))
    offer(hub, mine)
    theirs = cache("theirs")
    steps = 0
    for step in killed_at_each_step(download_all, theirs.cache):
        steps += 1
        assert Runtimes(theirs.cache).newest(runtime.id) in (None, runtime), step
    assert steps > 5
    assert Runtimes(theirs.cache).newest(runtime.id) == runtime
    sweep_half(theirs.cache)
    assert names(theirs) == [f"{runtime.checksum}.json", f"{runtime.checksum}.sqfs"]


def download_all():
    assert main(["runtime", "download", REPO]) == 0


def test_what_is_left_of_downloads_goes_with_the_garbage(cache, tmp_path, capsys):
    mine = cache("mine")
    runtime = whole(mine)
    task = make_task(tmp_path)
    write_reference(task.path / "tests" / "ot-verifier-runtime.json", Reference.of(runtime))
    mine.part("0" * 64).write_bytes(b"half")
    words = ["runtime", "gc", str(tmp_path / "set")]
    assert main(words) == 0
    assert mine.part("0" * 64).exists(), "somebody may go on with it"
    assert main([*words, "--keep-days", "0"]) == 0
    assert names(mine) == [f"{runtime.checksum}.json", f"{runtime.checksum}.sqfs"]


def test_a_manifest_is_one_of_its_checksum():
    assert parse_record(b"{}", "0" * 64) is None
    assert parse_record(b"[" * 100_000, "0" * 64) is None
