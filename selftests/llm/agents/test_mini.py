"""mini-swe-agent over our session: its own loop and words, our limits and our sandbox."""

import json
import subprocess
import sys

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.llm.agents import mini
from pytest_otval.llm.agents.mini import MiniSweAgent
from pytest_otval.llm.session import StopAttempt
from selftests.fakes import Answer
from selftests.llm.scripted import Place, ScriptedChat, call, runs, said, session_of, trajectory_of

DONE = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
ENDS = runs(DONE, "bash")


def plain(line):
    if line.startswith("uname"):
        return Answer(output=b"Linux\n6.1\n#1 SMP\nx86_64\n")
    return Answer(output=b"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n" if line == DONE else b"out\n")


@pytest.fixture
def solve(tmp_path):
    def make(*says, answer=plain, max_steps=10, instruction="do it"):
        chat, place = ScriptedChat(says), Place(tmp_path, answer)
        session = session_of(chat, place, max_steps, instruction=instruction)
        try:
            finish = MiniSweAgent().solve(session)
        except StopAttempt as stop:
            finish = str(stop)
        session.close(finish)
        return finish, chat, place, session.record

    return make


def test_until_it_submits(solve):
    finish, chat, place, record = solve(runs("ls", "bash"), ENDS, instruction="count {{ the }} {% files")
    assert (finish, place.lines[1:], len(record.steps)) == ("submitted", ["ls", DONE], 2)
    system, user, assistant, tool = chat.asked[1]
    assert "count {{ the }} {% files" in user["content"]
    assert "Linux 6.1 #1 SMP x86_64" in user["content"]
    assert json.loads(tool["content"]) == {"returncode": 0, "output": "out\n"}
    assert all("extra" not in message for message in (system, user, assistant, tool))
    found = trajectory_of(place)
    assert [step["source"] for step in found["steps"]] == ["system", "user", "agent", "agent"]
    assert found["steps"][2]["observation"]["results"][0]["content"] == tool["content"]


def test_parallel_calls(solve):
    both = said("", call({"command": "a"}, "bash"), call({"command": "b"}, "bash", "c2"))
    finish, chat, place, _ = solve(both, ENDS)
    assert (finish, place.lines[1:]) == ("submitted", ["a", "b", DONE])
    assert [message.get("tool_call_id") for message in chat.asked[1][3:]] == ["c1", "c2"]


def test_nothing_runs_after_it_submitted(solve):
    both = said("", call({"command": DONE}, "bash"), call({"command": "rm -rf /"}, "bash", "c2"))
    finish, _, place, _ = solve(both)
    assert (finish, place.lines[1:]) == ("submitted", [DONE])


def test_words_that_only_look_like_the_end(solve):
    status = Answer(status=1, output=b"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n")
    finish, _, _, _ = solve(ENDS, answer=lambda line: status if line == DONE else None, max_steps=2)
    assert finish == "steps"
    later = Answer(output=b"x\nCOMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n")
    assert solve(ENDS, answer=lambda line: later if line == DONE else None, max_steps=2)[0] == "steps"


@pytest.mark.parametrize(
    "broken",
    [
        said("no call"),
        said("cut", finish="length"),
        said("", call("{", "bash")),
        said("", call("[" * 100_000, "bash")),
        said("", call({"cmd": "ls"}, "bash")),
        said("", call({"command": "ls"}, "no_such_tool")),
        said("", call({"command": "ls"}, "bash"), call("{", "bash", "c2")),
    ],
)
def test_answers_that_cannot_be_understood(solve, broken):
    finish, chat, place, record = solve(broken)
    assert (finish, len(chat.asked), place.lines[1:]) == ("format", 3, [])
    assert [step.malformed for step in record.steps] == [True] * 3
    roles = [step["source"] for step in trajectory_of(place)["steps"]]
    assert roles == ["system", "user", "agent", "user", "agent", "user", "agent"]


def test_one_that_is_understood_starts_the_count_anew(solve):
    bad, good = said("no call"), runs("ls", "bash")
    finish, chat, _, _ = solve(bad, bad, good, bad, bad, ENDS)
    assert (finish, len(chat.asked)) == ("submitted", 6)


@pytest.mark.parametrize("command", [5, None, ["ls"], {"a": 1}, "echo \0", "echo \ud800"])
def test_odd_commands(solve, command):
    finish, _, place, _ = solve(said("", call({"command": command}, "bash")), ENDS)
    assert finish == "submitted"
    assert all("\0" not in line for line in place.lines)


def test_memory_is_told(solve):
    killed = Answer("memory", None, b"so far")
    _, chat, _, record = solve(runs("x", "bash"), ENDS, answer=lambda line: killed if line == "x" else plain(line))
    told = json.loads(chat.asked[1][-1]["content"])
    assert (told["returncode"], told["output"], record.memory_kills) == (-1, "so far", 1)
    assert "memory was used up" in told["exception_info"]


def test_long_output_is_shortened(solve):
    long = Answer(output=b"x" * 100_000)
    _, chat, _, _ = solve(runs("x", "bash"), ENDS, answer=lambda line: long if line == "x" else plain(line))
    assert len(chat.asked[1][-1]["content"]) < 12_000


def test_its_variables():
    agent = MiniSweAgent()
    assert agent.env["PAGER"] == "cat"
    assert agent.version.startswith("2.")


def test_a_user_with_settings_of_its_own(tmp_path, monkeypatch):
    """It reads none of them, makes no folder, prints nothing, and leaves the environment as it was."""
    home = tmp_path / "home"
    folder = home / ".config" / "mini-swe-agent"
    folder.mkdir(parents=True)
    (folder / ".env").write_text("CANARY=from-home\nMSWEA_MODEL_NAME=other\n")
    script = """
import os
from pathlib import Path
before = dict(os.environ)
from pytest_otval.llm.agents.mini import MiniSweAgent
agent = MiniSweAgent()
assert agent.version and agent.env
assert dict(os.environ) == before, set(os.environ.items()) ^ set(before.items())
"""
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": str(home / ".config")}
    for more in ({}, {"MSWEA_GLOBAL_CONFIG_DIR": str(folder)}):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**env, **more},
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(path.name for path in home.rglob("*")) == [".config", ".env", "mini-swe-agent"]


def test_where_it_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "minisweagent", None)
    with pytest.raises(OtvalUsageError, match="--minimal"):
        mini._package.__wrapped__()
