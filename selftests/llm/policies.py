"""What the tests' model says: a policy for each model name, the same words for the same conversation each time.

How far a conversation is, is told by its messages; the server remembers none. A policy file is TOML:

    seed = 7

    [[tasks]]                       # the first whose pattern is found in the messages
    instruction = "sum of .* numbers"
    commands = ["echo 42 > /app/answer.txt"]

    [models.half]                   # further names, or others' settings
    policy = "sometimes"
    rate = 0.25

Judges (``judge-right``, ...) have faults in it, see ``judges``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import tomli

from selftests.llm.judges import KINDS, Fault, judged

SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""How mini-swe-agent is told that the work is done."""
_FENCE = re.compile(r"```(mswea_bash_command|bash)\b")
_VARIANTS = ("parallel", "broken", "no-ids", "parts", "same-index", "object", "stop")


@dataclass(frozen=True)
class Model:
    """Settings of one model name; ``policy`` decides what it says, ``fault`` what becomes of the request."""

    policy: str = "solves"
    """solves, sometimes, loops, malformed, variants, reasons, long; judge- and one of ``judges.KINDS``."""
    rate: float = 0.5
    """Of attempts that solve, with ``sometimes``."""
    fault: str = ""
    """overflow, slow, hang, storm, down, disconnect, cut, wrong-json, refuse, whole, whole-cut, in-200; no-format
    refuses a request with ``response_format``."""
    times: int = 1
    """So often each request meets the fault before it is answered; -1: always."""
    after: int = 0
    """From this step of a conversation on."""
    seconds: float = 0.01
    """Between two pieces, with ``slow``."""
    status: int = 0
    retry_after: str = ""
    text: str = ""
    """Of a refusal; here and in ``retry_after`` {authorization} stands for the header that came."""
    code: str = ""
    usage: bool = True


MODELS = {
    "solves": Model(),
    "sometimes": Model("sometimes"),
    "loops": Model("loops"),
    "malformed": Model("malformed"),
    "variants": Model("variants"),
    "reasons": Model("reasons"),
    "long": Model("long"),
    "no-usage": Model(usage=False),
    "overflows": Model(
        fault="overflow",
        times=-1,
        after=2,
        status=400,
        code="context_length_exceeded",
        text="This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens.",
    ),
    "slow": Model(fault="slow", times=-1),
    "hangs": Model(fault="hang", times=-1),
    "storm": Model(fault="storm", times=2, status=429, retry_after="0", text="Rate limit reached"),
    "down": Model(fault="down", times=-1, status=503, text="no worker is there"),
    "disconnects": Model(fault="disconnect"),
    "cut": Model(fault="cut"),
    "wrong-json": Model(fault="wrong-json"),
    "whole-cut": Model(fault="whole-cut"),
    "whole": Model(fault="whole", times=-1),
    "unauthorized": Model(fault="refuse", times=-1, status=401, text="Incorrect key: {authorization}"),
    **{f"judge-{kind}": Model(f"judge-{kind}") for kind in KINDS},
}


@dataclass(frozen=True)
class Said:
    """One answer, before it takes the form of a protocol."""

    text: str = ""
    reasoning: str = ""
    commands: tuple[str, ...] = ()
    variant: str = ""
    finish: str = ""


@dataclass(frozen=True)
class Policies:
    """All that the server knows."""

    tasks: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = ()
    seed: int = 0
    models: Mapping[str, Model] = field(default_factory=lambda: MODELS)
    faults: tuple[Fault, ...] = ()

    @classmethod
    def read(cls, file: Path) -> Policies:
        values = tomli.loads(file.read_text())
        tasks = tuple((re.compile(one["instruction"]), tuple(one["commands"])) for one in values.get("tasks", ()))
        given = values.get("models", {})
        models = {name: replace(MODELS.get(name, Model()), **options) for name, options in given.items()}
        faults = tuple(Fault(**one) for one in values.get("faults", ()))
        return cls(tasks, values.get("seed", 0), {**MODELS, **models}, faults)

    def say(self, model: Model, request: Mapping[str, Any], attempt: int) -> dict[str, Any]:
        """Return the assistant's message, with ``finish`` beside its fields. ``attempt`` counts from 0."""
        messages: Sequence[Mapping[str, Any]] = request["messages"]
        said = self._said(model, messages, attempt)
        return _as_calls(said, request["tools"], messages) if request.get("tools") else _as_text(said, messages)

    def _said(self, model: Model, messages: Sequence[Mapping[str, Any]], attempt: int) -> Said:
        if model.policy.startswith("judge-"):
            text, finish = judged(model.policy.removeprefix("judge-"), self.faults, messages, attempt, self.seed)
            return Said(text, finish=finish)
        step = step_of(messages)
        # What commands said later decides nothing.
        first = takewhile(lambda message: message["role"] != "assistant", messages)
        everything = "\n".join(_text(message.get("content")) for message in first)
        commands = next((commands for pattern, commands in self.tasks if pattern.search(everything)), ("true",))
        submits = (SUBMIT,) if SUBMIT.split()[1] in everything else ()
        match model.policy:
            case "loops":
                return Said("Let me look again.", commands=("ls -la",))
            case "malformed":
                return Said("I am not sure how to call.", commands=("ls",), variant=f"malformed-{step % 4}")
            case "long":
                return Said("word " * 2000, finish="length")
            case "sometimes":
                said = next((_text(one.get("content")) for one in messages if one["role"] == "assistant"), "")
                begun = re.match(r"Attempt (\d+)\.", said)
                number = int(begun[1]) if begun else attempt
                commands = commands if self._lucky(model, everything, number) else ("true",)
                return _next(commands + submits, step, f"Attempt {number}.")
            case "variants":
                broken = _VARIANTS.index("broken")
                done = step - sum(number % len(_VARIANTS) == broken for number in range(step))
                return replace(_next(commands + submits, done), variant=_VARIANTS[step % len(_VARIANTS)])
            case "reasons":
                return replace(_next(commands + submits, step), reasoning=f"I think about step {step}.")
        return _next(commands + submits, step)

    def _lucky(self, model: Model, everything: str, attempt: int) -> bool:
        name = next((pattern.pattern for pattern, _ in self.tasks if pattern.search(everything)), "")
        return _share(f"{self.seed} {name} {attempt}") < model.rate


def step_of(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return how many answers were given. mini-swe-agent leaves out those that it cannot read, and only complains."""
    roles = [message["role"] for message in messages]
    given = roles.count("assistant")
    begun = roles.index("assistant") if given else len(roles)
    return given + sum(pair in (("tool", "user"), ("user", "user")) for pair in pairwise(roles[begun:]))


def _next(commands: Sequence[str], step: int, text: str = "THOUGHT: on with it.") -> Said:
    return Said(text, commands=(commands[step],)) if step < len(commands) else Said("It is done.")


def _as_text(said: Said, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Commands in fences, of the kind that the first messages ask for."""
    asked = next((found[1] for one in messages if (found := _FENCE.search(_text(one.get("content"))))), "bash")
    fences = [f"```{asked}\n{command}\n```" for command in said.commands]
    if said.variant.startswith("malformed"):
        fences = {"malformed-0": [], "malformed-1": fences * 2}.get(said.variant, [f"```{asked}\nls"])
    message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join([said.text, *fences])}
    if said.reasoning:
        message["reasoning"] = said.reasoning
    return {"message": message, "finish": said.finish or "stop"}


def _as_calls(said: Said, tools: Sequence[Mapping[str, Any]], messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    name, parameter = _tool(tools)
    seed = hashlib.sha256(json.dumps(messages).encode()).hexdigest()[:8]
    calls = [_call(f"call_{seed}_{n}", name, {parameter: one}) for n, one in enumerate(said.commands)]
    message: dict[str, Any] = {"role": "assistant", "content": said.text, "tool_calls": calls}
    if said.reasoning:
        message["reasoning_content"] = said.reasoning
    if calls:
        _vary(message, said.variant, parameter, seed)
    finish = said.finish or ("tool_calls" if message["tool_calls"] and said.variant != "stop" else "stop")
    return {"message": message, "finish": finish, "same_index": said.variant == "same-index"}


def _vary(message: dict[str, Any], variant: str, parameter: str, seed: str) -> None:
    calls = message["tool_calls"]
    function = calls[0]["function"]
    match variant:
        case "parallel" | "same-index":
            calls.append(_call(f"call_{seed}_x", function["name"], {parameter: "true"}))
        case "broken" | "malformed-0":
            function["arguments"] = function["arguments"][:-2]
        case "no-ids":
            del calls[0]["id"], calls[0]["type"]
        case "parts":
            message["content"] = [{"type": "text", "text": message["content"]}]
        case "object":
            function["arguments"] = json.loads(function["arguments"])
        case "malformed-1":
            function["name"] = "no_such_tool"
        case "malformed-2":
            function["arguments"] = json.dumps({"other": 1})
        case "malformed-3":
            message["tool_calls"] = []


def _call(id: str, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def _tool(tools: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Return the tool that takes a command, and the name of that parameter."""
    for tool in tools:
        for parameter in tool["function"].get("parameters", {}).get("properties", {}):
            if parameter in ("command", "cmd", "script"):
                return tool["function"]["name"], parameter
    return tools[0]["function"]["name"], "command"


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content) if isinstance(content, list) else ""


def _share(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6]) / 2**48
