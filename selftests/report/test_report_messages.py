"""Conversations for training, from the trajectories of attempts."""

import json

import pytest

from pytest_otval.__main__ import main
from pytest_otval.llm.agents.mini import MiniSweAgent
from pytest_otval.llm.agents.tools import TOOL, ToolAgent
from pytest_otval.llm.atif import NAME
from pytest_otval.llm.client import EndpointChat
from pytest_otval.llm.conversation import outgoing
from pytest_otval.llm.session import StopAttempt
from pytest_otval.profile import ModelSection
from pytest_otval.report.messages import conversation, export_messages
from pytest_otval.report.results import read_results
from pytest_otval.report.trajectory import Trajectory
from selftests.fakes import Answer
from selftests.llm.scripted import Place, ScriptedChat, call, said, session_of
from selftests.llm.server import Running
from selftests.report.ledgers import attempt
from selftests.report.talks import EVIL, atif, run_of, step

PLACE = f"agent/{NAME}"
TALK = (
    step(1, "system", "be good"),
    step(2, "user", "do it"),
    step(3, message="look", calls=[("ls", "a b\n")], reasoning_content="hm"),
    step(4, message="done"),
)
SAID = [
    {"role": "system", "content": "be good"},
    {"role": "user", "content": "do it"},
    {
        "role": "assistant",
        "content": "look",
        "reasoning_content": "hm",
        "tool_calls": [
            {"id": "3-0", "type": "function", "function": {"name": "shell", "arguments": '{"command": "ls"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "3-0", "content": "a b\n"},
    {"role": "assistant", "content": "done"},
]


@pytest.fixture
def export(tmp_path):
    """Write a run, export it, and return the lines and the complaints."""

    def exported(*talks):
        file = tmp_path / "messages.jsonl"
        found = export_messages(read_results(run_of(tmp_path, *talks)), file)
        lines = [json.loads(text) for text in file.read_text().splitlines()]
        assert found.conversations == len(lines)
        return lines, found.complaints

    return exported


def test_a_conversation_with_reward_and_facts(export):
    flags = ["touched-tests"]
    line = attempt("+", number=3, flags=flags, truncated=True, cached_tokens=7, reasoning_tokens=2)
    (found,), complaints = export((line, {PLACE: atif(*TALK)}))
    assert complaints == []
    assert found == {
        "dataset": "demo",
        "task": "a",
        "model": "m",
        "attempt": 3,
        "agent": "tools",
        "task_digest": "sha256:a",
        "outcome": "solved",
        "solved": True,
        "reward": 1.0,
        "rewards": {"reward": 1.0},
        "class": "expected",
        "finish": "submitted",
        "truncated": True,
        "flags": flags,
        "tokens": {"prompt": 90, "completion": 10, "cached": 7, "reasoning": 2},
        "step": "",
        "messages": SAID,
        "tools": [TOOL],
        "left_out": 0,
    }


# --- word for word ---


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    file = tmp_path_factory.mktemp("policies") / "policies.toml"
    file.write_text(
        "[[tasks]]\ninstruction = 'do it'\ncommands = ['ls', 'cat x', 'pwd', 'id', 'true', 'true', 'true']\n"
    )
    with Running(file) as running:
        yield running


def solved(agent, session):
    """Let an agent work to its end."""
    try:
        finish = agent.solve(session)
    except StopAttempt as stop:
        finish = str(stop)
    session.close(finish)


def exported(place):
    file = place.place.log.with_name(NAME)
    return conversation(Trajectory.model_validate_json(file.read_bytes()))["messages"]


def comparable(message):
    """A message without what may differ: how JSON is written, reasoning, how texts are parted."""
    kept = {name: value for name, value in message.items() if name not in ("reasoning_content", "reasoning")}
    if isinstance(kept.get("content"), list):
        kept["content"] = "".join(part["text"] for part in kept["content"])
    if calls := kept.get("tool_calls"):
        kept["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": json.loads(call["function"]["arguments"])}}
            for call in calls
        ]
    return {name: value or "" for name, value in kept.items() if value or name == "content"}


@pytest.mark.parametrize("agent", [ToolAgent(), MiniSweAgent()], ids=lambda agent: agent.name)
@pytest.mark.parametrize("model", ["solves", "variants", "malformed", "reasons", "loops", "long"])
def test_what_went_over_the_wire_comes_back(server, tmp_path, agent, model):
    place = Place(tmp_path, lambda line: Answer(output=f"of {line}: {EVIL} \xff\n".encode("latin-1", "replace")))
    chat = EndpointChat(model, ModelSection(base_url=server.url, key_variable=""), None, None)
    solved(agent, session_of(chat, place, max_steps=6))
    sent, told = server.asked()["body"]["messages"], exported(place)
    assert len(sent) > 3 or model == "long"
    assert list(map(comparable, told[: len(sent)])) == list(map(comparable, sent))
    assert told[len(sent)]["role"] == "assistant"


def test_hostile_answers_and_half_characters_come_back_as_they_were_sent(tmp_path):
    answers = said(f"see {EVIL}", call({"command": "ls"}, id="one"), call("{broken", id="two")), said("half \udcff")
    chat = ScriptedChat(answers)
    place = Place(tmp_path, lambda line: Answer(output=b"a \xff\x00\x1b[2J\n"))
    solved(ToolAgent(), session_of(chat, place))
    *told, last = exported(place)
    assert list(map(comparable, told)) == list(map(comparable, outgoing(chat.asked[-1], reasoning_back=True)))
    assert last == {"role": "assistant", "content": "half ?"}


# --- which, and what is not ---


def test_errors_are_left_out_and_invalid_attempts_have_no_reward(export):
    files = {PLACE: atif(*TALK)}
    lines, complaints = export((attempt("x"), files), (attempt("!", number=1), files))
    assert [(one["outcome"], one["reward"], one["solved"]) for one in lines] == [("invalid", None, False)]
    assert complaints == []


def test_each_step_of_a_task_is_a_conversation(export):
    files = {f"steps/{name}/{PLACE}": atif(step(1, "user", name)) for name in ("one", "two")}
    lines, _ = export((attempt("-"), {**files, f"artifacts/{PLACE}": b"{}", f"steps/one/artifacts/{PLACE}": b"{}"}))
    assert [(one["step"], one["messages"][0]["content"]) for one in lines] == [("one", "one"), ("two", "two")]


BROKEN = {
    "none": {},
    "no JSON": {PLACE: b"\x00\xff"},
    "cut": {PLACE: atif(*TALK)[:200]},
    "deep": {PLACE: b"[" * 100_000},
    "other types": {PLACE: b'{"agent": {"name": 1, "version": "1"}, "steps": "x"}'},
    "no number": {PLACE: atif(*TALK).replace(b'"step_id": 4', b'"metrics": {"prompt_tokens": NaN}')},
}


@pytest.mark.parametrize("files", BROKEN.values(), ids=list(BROKEN))
def test_what_is_no_trajectory_is_told_and_the_others_are_exported(export, files):
    lines, complaints = export((attempt("+"), files), (attempt("+", number=1), {PLACE: atif(*TALK)}))
    assert [one["attempt"] for one in lines] == [1]
    (complaint,) = complaints
    assert "teacher[m-0]" in complaint and "trajectory" in complaint


def test_hostile_text_is_a_line_of_json(export):
    talk = atif(step(1, "user", EVIL), step(2, message=EVIL, calls=[(EVIL, EVIL)]))
    (found,), _ = export((attempt("+"), {PLACE: talk}))
    assert found["messages"][0]["content"] == EVIL and found["messages"][2]["content"] == EVIL


def test_the_file_is_whole_or_not_there(tmp_path, monkeypatch):
    run = run_of(tmp_path, (attempt("+"), {PLACE: atif(*TALK)}))
    file = tmp_path / "messages.jsonl"
    monkeypatch.setattr("pytest_otval.report.messages.conversation", lambda _: {"messages": object()})
    before = set(tmp_path.iterdir())
    with pytest.raises(TypeError):
        export_messages(read_results(run), file)
    assert set(tmp_path.iterdir()) == before


def test_the_command(tmp_path, capsys):
    files = {PLACE: atif(*TALK)}
    run = run_of(tmp_path, (attempt("+"), files), (attempt("-", number=1), files), (attempt("+", number=2), {}))
    file = tmp_path / "messages.jsonl"
    words = ["report", str(run), "--export", str(file)]
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert f"export: 2 conversations in {file}" in out
    assert err.startswith(
        "not exported: datasets/demo/tasks/a/task.toml::teacher[m-2]: its evidence holds no trajectory"
    )
    assert main([*words, "--select", "class == 'expected' and attempt == 0"]) == 0
    assert [json.loads(text)["attempt"] for text in file.read_text().splitlines()] == [0]
