"""A plain loop of tool calls: a shell, until the model answers without a call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pytest_otval.llm.chat import Message
from pytest_otval.llm.session import Session
from pytest_otval.llm.shell import Ran
from pytest_otval.llm.steps import SHELL

MOST_CHARACTERS = 20_000
"""Of a command's output that the model gets to see: its first and last half."""
MOST_MALFORMED = 3
"""Answers in a row of which no call can be understood, after which the attempt ends."""

SYSTEM = """\
You solve a task on a Linux machine, in a shell. Call the tool to run commands; each runs in a shell of its own, in \
the same folder, and files and background processes stay. Nobody can answer questions. When the task is done, and \
checked, answer without a call.\
"""

TOOL: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": SHELL,
        "description": "Run a command line of bash and return its output and exit status.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string", "description": "The command line."}},
            "required": ["command"],
        },
    },
}


class ToolAgent:
    """See ``base.ModelAgent``."""

    name = "tools"
    version = "1"
    env: dict[str, str] = {"PAGER": "cat", "GIT_PAGER": "cat"}  # noqa: RUF012  (read only, by the protocol)

    def solve(self, session: Session) -> str:
        """Run all calls of each answer, one after the other."""
        messages: list[Message] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": session.instruction},
        ]
        malformed = 0
        while True:
            reply = session.ask(messages, [TOOL])
            messages.append(reply.message)
            calls = reply.message.get("tool_calls") or ()
            if not calls and reply.finish != "length":
                return "submitted"
            results = [self._called(session, call) for call in calls]
            messages += results
            if not calls:
                session.malformed("the answer was cut off")
                messages.append({"role": "user", "content": "Your answer was cut off: be brief, and call the tool."})
            understood = any(not result.get("malformed") for result in results)
            malformed = 0 if understood else malformed + 1
            if malformed == MOST_MALFORMED:
                return "format"

    def _called(self, session: Session, call: Mapping[str, Any]) -> dict[str, Any]:
        command = _command(call)
        if command is None:
            why = f'call {SHELL} with {{"command": "..."}}'
            session.malformed(why)
            return {"role": "tool", "tool_call_id": call["id"], "content": f"error: {why}", "malformed": True}
        ran = session.run(command, call["id"])
        return {"role": "tool", "tool_call_id": call["id"], "content": shown(ran)}


def _command(call: Mapping[str, Any]) -> str | None:
    """Return the command of a call; None where it cannot be understood."""
    try:
        arguments = json.loads(call["function"]["arguments"])
    except (ValueError, RecursionError):
        return None
    command = arguments.get("command") if isinstance(arguments, dict) else None
    return command if isinstance(command, str) and call["function"]["name"] == SHELL and "\0" not in command else None


def shown(ran: Ran) -> str:
    """Return what the model is told of a command."""
    text, half = ran.output, MOST_CHARACTERS // 2
    if len(text) > MOST_CHARACTERS:
        text = f"{text[:half]}\n[{len(text) - MOST_CHARACTERS} characters are left out here]\n{text[-half:]}"
    ended = f"[{ran.note}]" if ran.note else f"[exit status {ran.status}]"
    return f"{text.rstrip()}\n{ended}".lstrip()
