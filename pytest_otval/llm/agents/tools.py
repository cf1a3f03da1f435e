"""A plain loop of tool calls: a shell, until the model answers without a call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pytest_otval.llm.chat import Message
from pytest_otval.llm.session import Session, shortened
from pytest_otval.llm.shell import Ran
from pytest_otval.llm.steps import SHELL

MOST_MALFORMED = 3
"""Answers in a row of which no call can be understood, after which the attempt ends."""

SYSTEM = """\
You solve a task on a Linux machine, in a shell. Call the tool to run commands; each runs in a shell of its own, in \
the same folder, and files and background processes stay. Nobody can answer questions. When the task is done, and \
checked, answer without a call.\
"""
CUT_OFF = "Your answer was cut off: be brief, and call the tool."
HOW_TO_CALL = f'call {SHELL} with {{"command": "..."}}'

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
        while malformed < MOST_MALFORMED:
            reply = session.ask(messages, [TOOL])
            messages.append(reply.message)
            calls = reply.message.get("tool_calls") or ()
            if not calls and reply.finish != "length":
                return "submitted"
            if not calls:
                session.malformed("the answer was cut off")
                messages.append({"role": "user", "content": CUT_OFF})
            commands = [_command(call) for call in calls]
            for call, command in zip(calls, commands, strict=True):
                told = _called(session, call, command)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": told})
            malformed = malformed + 1 if all(command is None for command in commands) else 0
        return "format"


def _called(session: Session, call: Mapping[str, Any], command: str | None) -> str:
    """Return what the model is told of a call."""
    if command is None:
        session.malformed(HOW_TO_CALL)
        return f"error: {HOW_TO_CALL}"
    return shown(session.run(command, call["id"]))


def _command(call: Mapping[str, Any]) -> str | None:
    """Return the command of a call; None where it cannot be understood."""
    try:
        arguments = json.loads(call["function"]["arguments"])
    except (ValueError, RecursionError):
        return None
    command = arguments.get("command") if isinstance(arguments, dict) else None
    return command if isinstance(command, str) and call["function"]["name"] == SHELL else None


def shown(ran: Ran) -> str:
    """Return what the model is told of a command."""
    ended = f"[{ran.note}]" if ran.note else f"[exit status {ran.status}]"
    return f"{shortened(ran.output).rstrip()}\n{ended}".lstrip()
