"""What ``docker build`` refuses in an instruction before it runs anything, whether or not its stage is needed.

See BuildKit's frontend/dockerfile/instructions/parse.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pytest_otval.task.buildkit import buildkit

if TYPE_CHECKING:
    from pytest_otval.task.dockerfile import Instruction

_FLAGS = {
    "ADD": {"--chown", "--chmod", "--link", "--keep-git-dir", "--checksum", "--unpack", "--exclude"},
    "COPY": {"--chown", "--chmod", "--link", "--from", "--parents", "--exclude"},
    "FROM": {"--platform"},
    "RUN": {"--mount", "--network", "--security", "--device"},
    "HEALTHCHECK": {"--interval", "--timeout", "--start-period", "--start-interval", "--retries"},
}
_SWITCHES = {"--link", "--keep-git-dir", "--unpack", "--parents"}
_REPEATED = {"--exclude", "--mount", "--device"}
_STAGE_NAME = re.compile(r"[a-z][a-z0-9_.-]*")
_DURATION = re.compile(r"0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+")


def fault(instruction: Instruction) -> str | None:
    """Return why an instruction is refused: one line; None where it is not."""
    kind, args = instruction.kind, instruction.args
    if kind.lower() not in buildkit().all_cmds():
        return f"unknown instruction: {kind}"
    found = _flag_fault(kind, instruction.flags)
    if found is None and kind in _RULES:
        found = _RULES[kind](instruction)
    if found is None and kind not in ("CMD", "ENTRYPOINT") and not any(args):
        found = f"{kind} without an argument"
    return found


def _flag_fault(kind: str, flags: tuple[str, ...]) -> str | None:
    seen = set[str]()
    for flag in flags:
        name, assigned, value = flag.partition("=")
        if name not in _FLAGS.get(kind, ()):
            return f"{kind} knows no flag {name}"
        if name in seen and name not in _REPEATED:
            return f"{kind} has {name} twice"
        if name in _SWITCHES:
            if value.lower() not in ("true", "false") and assigned:
                return f"{kind} {name} is true or false"
        elif not assigned:
            return f"{kind} {name} has no value"
        seen.add(name)
    return None


def _from(instruction: Instruction) -> str | None:
    args = instruction.args
    if not (len(args) == 1 or (len(args) == 3 and args[1].upper() == "AS")):
        return "FROM takes an image, or an image AS a name"
    if len(args) == 3 and not _STAGE_NAME.fullmatch(args[2].lower()):
        return f"{args[2][:200]!r} is no name for a stage: a letter, then letters, digits, _, - and ."
    return None


def _copied(instruction: Instruction) -> str | None:
    if len(instruction.args) < 2:
        return f"{instruction.kind} takes at least a source and a destination"
    destination = instruction.args[-1]
    if any(re.fullmatch(rf"<<-?(['\"]?){re.escape(item.name)}\1", destination) for item in instruction.heredocs):
        return f"{instruction.kind} takes no here-document as its destination"
    return None


def _pairs(instruction: Instruction) -> str | None:
    names = instruction.args[::2]
    if instruction.kind == "ARG":
        names = tuple(word.partition("=")[0] for word in instruction.args)
    return None if all(names) else f"{instruction.kind} with a blank name"


def _shell(instruction: Instruction) -> str | None:
    return "SHELL takes a JSON list" if instruction.shell_form else None


def _volume(instruction: Instruction) -> str | None:
    return None if all(word.strip() for word in instruction.args) else "VOLUME with an empty path"


def _onbuild(instruction: Instruction) -> str | None:
    if instruction.inner in ("ONBUILD", "FROM", "MAINTAINER"):
        return f"ONBUILD {instruction.inner} is not allowed"
    return None


def _healthcheck(instruction: Instruction) -> str | None:
    kind, *command = instruction.args or ("",)
    if kind.upper() == "NONE":
        return "HEALTHCHECK NONE takes no arguments" if any(command) else None
    if kind.upper() != "CMD":
        return f"HEALTHCHECK takes CMD or NONE, not {kind!r}"
    if not any(command):
        return "HEALTHCHECK CMD without a command"
    for flag in instruction.flags:
        name, _, value = flag.partition("=")
        right = re.fullmatch(r"\d{1,9}", value) if name == "--retries" else _DURATION.fullmatch(value)
        if not right:
            return f"HEALTHCHECK {flag}: no {'number' if name == '--retries' else 'duration such as 30s'}"
    return None


_RULES: Mapping[str, Callable[[Instruction], str | None]] = {
    "FROM": _from,
    "COPY": _copied,
    "ADD": _copied,
    "ENV": _pairs,
    "LABEL": _pairs,
    "ARG": _pairs,
    "SHELL": _shell,
    "VOLUME": _volume,
    "ONBUILD": _onbuild,
    "HEALTHCHECK": _healthcheck,
}
