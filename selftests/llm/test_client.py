"""The client against a real server process that does everything wrong in turn."""

import json
import os
import subprocess
import sys
import threading
import time
import traceback

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.llm import client as module
from pytest_otval.llm.budget import Budget, Spent
from pytest_otval.llm.chat import BudgetSpentError, ContextOverflowError, EndpointError, Usage
from pytest_otval.llm.client import TRIES, EndpointChat, section_for
from pytest_otval.llm.secret import SHOWN
from pytest_otval.profile import ModelSection, Profile
from selftests.llm.server import Running

POLICIES = """
[[tasks]]
instruction = "write 42"
commands = ["echo 42 > answer", "cat answer"]

[models.busy]
fault = "down"
status = 503
retry_after = "9"

[models.spent]
fault = "refuse"
times = -1
status = 429
code = "insufficient_quota"
text = "You exceeded your current quota"

[models.refused]
fault = "refuse"
times = -1
status = 400
text = "{authorization} wants\\n\\u001b[31mred"

[models.echo]
fault = "refuse"
times = -1
status = 403
retry_after = "{authorization}"

[models.deep-echo]
fault = "refuse"
times = -1
status = 400
text = "%s{authorization}"

[models.busy-echo]
fault = "refuse"
times = -1
status = 500
text = "no worker for {authorization}"

[models.other-worker]
fault = "in-200"
status = 502
text = "the provider is down"

[models.too-long]
fault = "in-200"
times = -1
status = 400
text = "This endpoint's maximum context length is 128000 tokens"

[models.moved]
fault = "refuse"
times = -1
status = 307

[models.slowest]
fault = "slow"
times = -1
seconds = 0.3

[models.no-format]
fault = "no-format"
times = -1
status = 400
text = "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."

[models.storm-for-ever]
fault = "storm"
times = -1
status = 429
retry_after = "3600"
""" % (" " * 3970)
ASK = [{"role": "system", "content": "You are good."}, {"role": "user", "content": "Please write 42."}]
BASH = {
    "type": "function",
    "function": {"name": "bash", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}},
}
CANARY = "sk-canary-5f0c9a7be1d24c63"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    file = tmp_path_factory.mktemp("policies") / "policies.toml"
    file.write_text(POLICIES)
    with Running(file) as running:
        yield running


@pytest.fixture
def chat(server, monkeypatch):
    monkeypatch.setenv("CANARY_KEY", CANARY)

    def make(name, budget=None, fields=None, **section):
        section = {"base_url": server.url, "key_variable": "CANARY_KEY", **section}
        return EndpointChat(name, ModelSection(**section), budget, fields)

    return make


@pytest.fixture
def waited(monkeypatch):
    seconds = []
    monkeypatch.setattr(time, "sleep", seconds.append)
    return seconds


def commands(reply):
    return [json.loads(call["function"]["arguments"])["command"] for call in reply.message.get("tool_calls", ())]


@pytest.mark.parametrize("stream", [True, False])
def test_a_conversation_to_its_end(chat, stream):
    talk, messages = chat("solves", stream=stream), list(ASK)
    said = []
    while not said or said[-1].finish == "tool_calls":
        said.append(talk.complete(messages, [BASH]))
        messages.append(said[-1].message)
        messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
            for call in said[-1].message.get("tool_calls", ())
        ]
    assert [commands(reply) for reply in said] == [["echo 42 > answer"], ["cat answer"], []]
    assert said[-1].message == {"role": "assistant", "content": "It is done."}
    assert said[-1].finish == "stop"
    assert all(reply.usage.prompt > 0 and reply.usage.completion > 0 for reply in said)
    assert said[0].usage.cached == 0 < said[2].usage.cached
    assert all(reply.retries == 0 and reply.seconds > 0 and reply.waited >= 0 for reply in said)


def test_without_tools_it_is_text(chat):
    reply = chat("solves").complete([{"role": "user", "content": "```mswea_bash_command\nx\n```\nwrite 42"}])
    assert reply.message["content"] == "THOUGHT: on with it.\n\n```mswea_bash_command\necho 42 > answer\n```"
    assert reply.finish == "stop"


@pytest.mark.parametrize("stream", [True, False])
def test_all_variants_of_calls_come_in_one_form(chat, stream):
    talk, messages, kinds = chat("variants", stream=stream), list(ASK), []
    for _ in range(7):
        reply = talk.complete(messages, [BASH])
        for call in reply.message.get("tool_calls", ()):
            assert call["id"] and call["type"] == "function"
            assert isinstance(call["function"]["arguments"], str)
        assert isinstance(reply.message["content"], str)
        kinds.append(len(reply.message.get("tool_calls", ())))
        assert reply.finish == ("tool_calls" if kinds[-1] else "stop")
        messages.append(reply.message)
    # parallel, broken, no-ids; then the work is done.
    assert kinds == [2, 1, 1, 0, 0, 0, 0]


def test_reasoning(chat):
    talk = chat("reasons", usd_in=1.0, usd_out=1e6)
    reply = talk.complete(ASK, [BASH])
    assert reply.message["reasoning_content"] == "I think about step 0."
    assert 0 < reply.usage.reasoning <= reply.usage.completion


def test_a_cut_answer_says_so(chat):
    reply = chat("long").complete(ASK)
    assert reply.finish == "length"
    assert len(reply.message["content"]) > 9000


@pytest.mark.parametrize(
    ("name", "retries"),
    [
        ("disconnects", 1),
        ("cut", 1),
        ("wrong-json", 1),
        ("storm", 2),
        ("busy", 1),
        ("whole-cut", 1),
        ("other-worker", 1),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_what_may_pass_is_tried_again(chat, waited, name, retries, stream):
    # Each fault is met once by each conversation.
    ask = [*ASK, {"role": "user", "content": f"{stream}"}]
    reply = chat(name, stream=stream).complete(ask, [BASH])
    assert commands(reply) == ["echo 42 > answer"]
    assert reply.retries == retries == len(waited)
    least = 9 if name == "busy" else 0
    assert all(least <= seconds <= least + 2 for seconds in waited)


def test_an_answer_in_one_piece_is_taken_where_pieces_were_asked_for(chat):
    reply = chat("whole").complete(ASK, [BASH])
    assert commands(reply) == ["echo 42 > answer"] and reply.retries == 0


def test_it_gives_up_after_a_known_number_of_tries(chat, server, waited):
    before = server.asked()["requests"]
    with pytest.raises(EndpointError, match=rf"down at http.*: HTTP 503: no worker is there \({TRIES} tries\)"):
        chat("down").complete(ASK)
    assert server.asked()["requests"] - before == TRIES
    assert len(waited) == TRIES - 1
    assert waited[0] <= 2 and max(waited) <= 61 and sum(waited) > 30


def test_nobody_waits_longer_than_a_minute(chat, waited):
    with pytest.raises(EndpointError, match="HTTP 429"):
        chat("storm-for-ever").complete(ASK)
    assert all(60 <= seconds <= 61 for seconds in waited)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("unauthorized", r"HTTP 401: Incorrect key: Bearer \[key\]; is the key in CANARY_KEY right\?"),
        ("none", r"HTTP 404: The model `none` does not exist\.; are base_url and the model's name right\?"),
        ("spent", "HTTP 429: You exceeded your current quota"),
        ("refused", r"HTTP 400: Bearer \[key\] wants \\x1b\[31mred"),
        ("moved", "HTTP 307"),
    ],
)
def test_what_cannot_pass_is_told_at_once_in_one_line(chat, server, waited, name, words):
    before = server.asked()["requests"]
    with pytest.raises(EndpointError, match=words) as caught:
        chat(name).complete(ASK)
    assert str(caught.value).isprintable()
    assert server.asked()["requests"] - before <= 1
    assert waited == []


def test_a_dead_endpoint_is_told(chat, waited):
    with Running() as gone:
        url = gone.url
    with pytest.raises(EndpointError, match=r"the connection failed \(ConnectError: .*\) \(10 tries\)"):
        chat("solves", base_url=url).complete(ASK)


def test_a_wait_that_would_end_after_the_deadline_is_not_begun(chat, waited):
    with pytest.raises(EndpointError, match=r"HTTP 429.*\(1 tries\)"):
        chat("storm-for-ever").complete(ASK, deadline=time.monotonic() + 50)
    assert waited == []


@pytest.mark.parametrize("stream", [True, False])
def test_the_deadline_ends_an_answer_that_hangs(chat, stream):
    with pytest.raises(TimeoutError, match="its answer was not complete in time"):
        chat("hangs", stream=stream).complete(ASK, deadline=time.monotonic() + 0.2)


def test_the_deadline_ends_an_answer_that_comes_byte_by_byte(chat):
    with pytest.raises(TimeoutError, match="its answer was not complete in time"):
        chat("slowest").complete(ASK, [BASH], deadline=time.monotonic() + 0.5)


def test_an_endpoint_that_says_nothing_until_the_deadline_is_dead(chat, monkeypatch):
    monkeypatch.setattr(module, "HUNG_SECONDS", 0.0)
    with pytest.raises(EndpointError, match="nothing came of an answer"):
        chat("hangs").complete(ASK, deadline=time.monotonic() + 0.3)


def test_silence_ends_a_try(chat, monkeypatch, waited):
    monkeypatch.setattr(module, "TRIES", 2)
    with pytest.raises(EndpointError, match=r"it did not answer in time \(2 tries\)"):
        chat("hangs", silence_seconds=1).complete(ASK)


def test_a_conversation_that_is_too_long(chat):
    messages = [*ASK, *[{"role": "assistant", "content": "x"}] * 2]
    with pytest.raises(ContextOverflowError, match="HTTP 400: This model's maximum context length is 4096 tokens"):
        chat("overflows").complete(messages)


@pytest.mark.parametrize("stream", [True, False])
def test_an_error_in_place_of_an_answer_is_one(chat, stream):
    with pytest.raises(ContextOverflowError, match="HTTP 400: This endpoint's maximum"):
        chat("too-long", stream=stream).complete(ASK)


# --- what is sent ---


def test_only_what_the_profile_says_is_sent(chat, server, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "of-somebody-else")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer of-somebody-else\nX-Mine: of-somebody-else")
    section = {"request": {"temperature": 0.5, "seed": 1}, "served_name": "solves"}
    for key in ("CANARY_KEY", ""):
        # Another silence makes another connection: openai reads variables when it is made.
        chat("mine", key_variable=key, silence_seconds=17, fields={"seed": 2}, **section).complete(ASK, [BASH])
        asked = server.asked()
        headers = {name.lower(): text for name, text in asked["headers"].items()}
        assert headers.get("authorization") == (f"Bearer {CANARY}" if key else None)
        assert "of-somebody-else" not in json.dumps(asked)
        assert asked["body"] == {
            "model": "solves",
            "messages": ASK,
            "tools": [BASH],
            "temperature": 0.5,
            "seed": 2,
            "stream": True,
            "stream_options": {"include_usage": True},
        }


FORMAT = {"type": "json_object"}


def test_a_form_of_the_answer_is_asked_for(chat, server):
    chat("solves").complete(ASK, answer_format=FORMAT)
    assert server.asked()["body"]["response_format"] == FORMAT
    chat("solves").complete(ASK)
    assert "response_format" not in server.asked()["body"]


def test_an_endpoint_that_takes_no_form_is_asked_without_and_remembered(chat, server, monkeypatch):
    monkeypatch.setattr(module, "_without_format", set())
    before = server.asked()["requests"]
    for count in (2, 3):
        reply = chat("no-format").complete(ASK, answer_format=FORMAT)
        assert reply.finish == "stop" and reply.retries == 0
        assert server.asked()["requests"] - before == count
        assert "response_format" not in server.asked()["body"]


def test_a_form_that_the_profile_asks_for_is_the_users(chat, monkeypatch):
    monkeypatch.setattr(module, "_without_format", set())
    with pytest.raises(EndpointError, match="HTTP 400: Invalid parameter: 'response_format'"):
        chat("no-format", request={"response_format": FORMAT}).complete(ASK)


def test_a_proxy_of_the_site_is_not_asked_for_a_server_of_this_machine(chat, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    chat("solves", silence_seconds=18).complete(ASK)


def test_without_the_library_it_says_what_to_do():
    script = (
        "import sys; sys.modules['openai'] = None\n"
        "from pytest_otval.core import OtvalUsageError\nfrom pytest_otval.llm.client import EndpointChat\n"
        "from pytest_otval.profile import ModelSection\n"
        "try: EndpointChat('a', ModelSection(base_url='http://localhost/v1'))\n"
        "except OtvalUsageError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout == "openai is not installed: run ./setup.sh without --minimal\n"


# --- money ---


def test_prices(chat):
    reply = chat("solves", usd_in=2.0, usd_out=10.0, usd_cached=0.5).complete([*ASK, *ASK])
    usage = reply.usage
    assert usage.cached > 0
    assert usage.usd == pytest.approx(
        ((usage.prompt - usage.cached) * 2 + usage.cached * 0.5 + usage.completion * 10) / 1e6
    )
    assert chat("solves").complete(ASK).usage.usd is None


def test_an_endpoint_that_counts_nothing_is_counted_by_us(chat):
    usage = chat("no-usage", usd_in=1.0, usd_out=1.0).complete(ASK).usage
    assert usage.estimated and usage.prompt > 10 and usage.completion > 5 and usage.usd > 0


def test_a_spent_budget_ends_it(chat, server, tmp_path):
    budget = Budget(tmp_path, tokens=60)
    talk = chat("solves", budget)
    first = talk.complete(ASK)
    assert budget.spent() == Spent(1, first.usage.tokens, 0)
    budget.spend("other", Usage(60))
    before = server.asked()["requests"]
    with pytest.raises(BudgetSpentError, match=r"the budget of 60 tokens is spent: \d+ were used"):
        talk.complete(ASK)
    assert server.asked()["requests"] == before


def test_money_needs_prices(chat, tmp_path):
    with pytest.raises(OtvalUsageError, match=r"has no prices .*--otval-budget-usd needs"):
        chat("solves", Budget(tmp_path, usd=1.0))


# --- whose turn it is ---


def test_no_more_at_a_time_than_the_profile_says(chat, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "node_folder", lambda: tmp_path)
    with Running() as alone:
        talk = chat("slow", base_url=alone.url, concurrency=2)
        threads = [threading.Thread(target=talk.complete, args=(ASK,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        asked = alone.asked()
    assert asked["requests"] == 6 and asked["most"] <= 2


def test_a_wait_for_a_slot_ends_at_the_deadline(chat, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "node_folder", lambda: tmp_path)
    talk = chat("solves", concurrency=1)
    with talk._slots.one(), pytest.raises(EndpointError, match="none of its 1 slots was free"):
        chat("solves", concurrency=1).complete(ASK, deadline=time.monotonic() + 0.1)


ASKER = """
import sys
from pathlib import Path
from pytest_otval.llm import client
from pytest_otval.llm.budget import Budget
from pytest_otval.llm.chat import BudgetSpentError
from pytest_otval.profile import ModelSection
client.node_folder = lambda: Path(sys.argv[3])
section = ModelSection(base_url=sys.argv[1], concurrency=1)
talk = client.EndpointChat(sys.argv[4], section, Budget(Path(sys.argv[2]), tokens=int(sys.argv[5])))
print("ready", flush=True)
answers = 0
try:
    while True:
        talk.complete([{"role": "user", "content": "x"}])
        answers += 1
except BudgetSpentError:
    print(answers)
"""


def asker(url, run, slots, model="slow", tokens=100):
    argv = [sys.executable, "-c", ASKER, url, str(run), str(slots), model, str(tokens)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def test_two_processes_share_slots_and_budget(tmp_path):
    with Running() as alone:
        both = [asker(alone.url, tmp_path, tmp_path) for _ in range(2)]
        answers = [int(one.communicate()[0].split()[1]) for one in both]
        asked = alone.asked()
    spent = Budget(tmp_path, tokens=1).spent()
    assert asked["most"] == 1
    assert asked["requests"] == sum(answers) == spent.answers
    # One slot: nothing was on its way when the last answer spent the rest.
    assert 100 <= spent.tokens < 100 + spent.tokens / spent.answers + 1


def test_a_killed_process_gives_its_slot_back(tmp_path, chat, monkeypatch):
    monkeypatch.setattr(module, "node_folder", lambda: tmp_path)
    with Running() as alone:
        holder = asker(alone.url, tmp_path, tmp_path, model="hangs")
        while not alone.asked()["requests"]:
            assert holder.poll() is None
        # A slot has the address and the model's name in its name.
        talk = chat("hangs", base_url=alone.url, concurrency=1)
        with pytest.raises(EndpointError, match="none of its 1 slots"):
            talk.complete(ASK, deadline=time.monotonic() + 0.1)
        os.kill(holder.pid, 9)
        holder.communicate()
        with talk._slots.one(time.monotonic() + 60):
            pass


# --- nothing shows the key ---


@pytest.mark.parametrize("name", ["unauthorized", "refused", "echo", "busy-echo", "deep-echo"])
def test_the_key_is_in_nothing_that_comes_back(chat, server, waited, name, capfd, caplog):
    caplog.set_level("DEBUG")
    talk = chat(name)
    with pytest.raises(EndpointError) as caught:
        talk.complete(ASK)
    assert CANARY in json.dumps(server.asked()["headers"])
    shown = [repr(talk), repr(vars(talk)), str(caught.value), repr(caught.value), *capfd.readouterr(), caplog.text]
    shown.append("".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format()))
    assert all(CANARY not in text for text in shown)
    assert CANARY not in (subprocess.run(["ps", "axww"], capture_output=True, text=True).stdout)


def test_a_model_that_repeats_the_key_is_scrubbed(chat, monkeypatch):
    # The server says nothing that is worth the name of a key.
    monkeypatch.setenv("CANARY_KEY", "THOUGHT:")
    assert chat("solves").complete(ASK).message["content"].startswith(f"{SHOWN} on with it.")


# --- which address ---


def test_the_command_lines_address_wins_and_gets_no_key_of_another(server):
    profile = Profile(
        name="x", models={"a": {"base_url": "https://a.example/v1", "key_variable": "A_KEY", "usd_in": 1, "usd_out": 1}}
    )
    assert section_for(profile, "a").key_variable == "A_KEY"
    assert section_for(profile, "a", "https://a.example/v1/").key_variable == "A_KEY"
    other = section_for(profile, "a", "http://localhost:8000/v1")
    assert (other.base_url, other.key_variable, other.usd_in) == ("http://localhost:8000/v1", "", 1)
    assert section_for(profile, "b", "http://localhost:8000/v1").base_url == "http://localhost:8000/v1"
    with pytest.raises(OtvalUsageError, match="--otval-base-url ftp://x must be http"):
        section_for(profile, "b", "ftp://x")
    with pytest.raises(OtvalUsageError, match="the model b has no base_url"):
        EndpointChat("b", section_for(profile, "b"))
