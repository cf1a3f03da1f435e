"""A server of a model: the tests' own in vLLM's place, with faults."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pytest_otval.llm import serving
from pytest_otval.llm.client import EndpointChat
from pytest_otval.llm.serving import Server, ServerError, command_of, free_port
from pytest_otval.llm.weights import RECORD
from pytest_otval.profile import ModelSection, ServeSection

REPOSITORY = Path(__file__).parents[2]
REVISION = "0123456789" * 4
CHILD = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
SLEEP = "import time; time.sleep(600)"
KEY = "sk-canary-9a4e1d3c5b7f"


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Start a server whose program is a script; it gets its port as the only argument."""
    monkeypatch.setattr(serving, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(serving, "HEALTH_SECONDS", 0.2)
    started = []

    def start(script):
        port = free_port("127.0.0.1")
        argv = [sys.executable, "-c", script, str(port)]
        one = Server(
            argv, {**os.environ, "PYTHONPATH": str(REPOSITORY)}, f"http://127.0.0.1:{port}/health", tmp_path / "log"
        )
        started.append(one)
        return one

    yield start
    for one in started:
        one.end()


OURS = "import sys; from selftests.llm.server import main; sys.argv[1:] = ['--port', sys.argv[1]]; main()"


def children(pid):
    return psutil.Process(pid).children(recursive=True)


def gone(processes):
    """Whether all have ended; what was killed takes a moment."""
    for _ in range(600):
        if not any(map(serving._runs, processes)):
            return True
        time.sleep(0.1)
    return False


def test_it_is_ready_watched_and_ended_with_its_children(server):
    one = server(f"{CHILD}\n{OURS}")
    with one:
        one.wait_until_ready(60, lambda: False)
        processes = [psutil.Process(one._process.pid), *children(one._process.pid)]
        assert len(processes) == 2
        looks = iter([False, False, True])
        one.watch(lambda: next(looks))
    assert gone(processes)


def test_one_that_ignores_sigterm_is_killed(server, monkeypatch):
    monkeypatch.setattr(serving, "END_SECONDS", 0.3)
    one = server(f"import signal; signal.signal(15, signal.SIG_IGN)\n{CHILD}\nprint('up', flush=True)\n{SLEEP}")
    while "up" not in one.last_words():
        time.sleep(0.01)
    processes = [psutil.Process(one._process.pid), *children(one._process.pid)]
    one.end()
    assert gone(processes)


def test_one_that_dies_is_told_and_leaves_nothing(server):
    one = server(f"{CHILD}\nprint('out of memory', flush=True)\nimport time; time.sleep(0.3); sys.exit(3)")
    with pytest.raises(ServerError, match="it ended with status 3"), one:
        one.wait_until_ready(60, lambda: False)
    assert "out of memory" in one.last_words()
    assert gone(list(one._seen.values())) and len(one._seen) == 2


def test_one_that_dies_later_is_told(server):
    one = server(OURS)
    one.wait_until_ready(60, lambda: False)
    os.kill(one._process.pid, signal.SIGKILL)
    with pytest.raises(ServerError, match="it was killed by signal 9"):
        one.watch(lambda: False)


def test_one_that_is_never_ready_is_told(server):
    with (
        pytest.raises(ServerError, match=r"it was not ready within 0\.1 s"),
        server(SLEEP) as one,
    ):
        one.wait_until_ready(0.1, lambda: False)


def test_one_that_hangs_is_told(server, monkeypatch):
    monkeypatch.setattr(serving, "MISSES", 2)
    monkeypatch.setattr(serving, "END_SECONDS", 0.3)
    one = server(OURS)
    one.wait_until_ready(60, lambda: False)
    os.kill(one._process.pid, signal.SIGSTOP)
    with pytest.raises(ServerError, match="it hangs: 2 questions"), one:
        one.watch(lambda: False)
    assert gone(list(one._seen.values()))


def test_a_program_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ServerError, match=r"there is no program /none-such here: .*serve\.command says how"):
        Server(["/none-such"], {}, "http://127.0.0.1:9/", tmp_path / "log")


def test_the_command_is_the_profiles():
    section = ModelSection(context=4096)
    words = command_of(section, "a/b", Path("/w"), "127.0.0.1", 80, 2)
    assert words[:5] == ["vllm", "serve", "/w", "--served-model-name", "a/b"]
    assert words[-4:] == ["--tensor-parallel-size", "2", "--max-model-len", "4096"]
    assert command_of(ModelSection(), "a", Path("/w"), "x", 80, 1)[-2:] == ["--tensor-parallel-size", "1"]
    with pytest.raises(ValueError, match=r"has another \{NAME\} than weights"):
        ServeSection(command=("x", "{home}"))


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A workspace with weights, and a profile that serves them by the tests' server."""
    folder = tmp_path / "models" / f"me--mine@{REVISION}"
    folder.mkdir(parents=True)
    (folder / RECORD).write_text(
        json.dumps({"repository": "me/mine", "revision": REVISION, "files": {}, "whole": True})
    )
    (tmp_path / "clusters").mkdir()
    command = [sys.executable, "-m", "selftests.llm.server", "--host", "{host}", "--port", "{port}"]
    serve = f"[models.solves.serve]\ncommand = {json.dumps(command)}\ngpus = 0\n"
    profile = f'[models.solves]\nrepository = "me/mine"\nkey_variable = "CANARY_KEY"\n{serve}'
    (tmp_path / "clusters" / "site.toml").write_text(profile)
    environment = {**os.environ, "OT_WORKSPACE": str(tmp_path), "OT_SCRATCH": str(tmp_path / "scratch")}
    environment = {**environment, "PYTHONPATH": str(REPOSITORY), "CANARY_KEY": KEY}
    environment.pop("OT_MODELS", None)
    started = []

    def run(*words):
        argv = [sys.executable, "-m", "pytest_otval", "models", "serve", "--cluster", "site", *words]
        command = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
        )
        started.append(command)
        return command

    monkeypatch.setenv("CANARY_KEY", KEY)
    yield run
    for command in started:
        with command:
            command.terminate()


def test_the_command_serves_until_sigterm(site):
    command = site("solves")
    said = json.loads(command.stdout.readline())
    processes = children(command.pid)
    assert processes and not any(KEY in " ".join(one.cmdline()) for one in processes)
    chat = EndpointChat("solves", ModelSection(base_url=said["base_url"], key_variable="CANARY_KEY"))
    assert chat.complete([{"role": "user", "content": "x"}]).finish == "stop"
    command.terminate()
    assert command.communicate() == ("", "")
    assert command.returncode == 0
    assert gone(processes)


def test_the_command_ends_with_its_server(site):
    command = site("solves")
    command.stdout.readline()
    children(command.pid)[0].kill()
    _, error = command.communicate()
    assert command.returncode == 1
    assert "error: the server of solves: it was killed by signal 9; its output is in " in error


def test_a_killed_command_leaves_no_server(site):
    command = site("solves")
    command.stdout.readline()
    processes = children(command.pid)
    command.kill()
    assert gone(processes)


def test_gpus_that_are_not_here_are_told(site):
    _, error = site("solves", "--gpus", "99").communicate()
    assert "error: 99 GPUs are asked for, and this node has" in error


def test_weights_that_are_not_here_are_told(site):
    _, error = site("me/other", "--gpus", "0").communicate()
    assert "me/other is not there" in error and "models download" in error
