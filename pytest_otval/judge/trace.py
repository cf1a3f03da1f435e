"""What a judge is shown of an attempt: the conversation, what was counted of it, and nothing of its score."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import chain, groupby
from typing import Any

from pytest_otval.judge.blocks import ID_CHARS, block, readable, readable_name
from pytest_otval.judge.cutting import Piece, fit, some_of
from pytest_otval.judge.material import Material
from pytest_otval.llm import protected
from pytest_otval.llm.actions import look_at
from pytest_otval.llm.steps import SHELL
from pytest_otval.llm.trajectory_statistics import Statistics

HEAD, TAIL = 3, 5
"""Steps at the beginning and at the end that come first."""
MOST_PARTS = 20
"""Of a step; those behind are one."""
MOST_LOOKED_AT = 20_000
"""Characters of a command that are looked at for what they do; for names alone all are."""

BLIND = frozenset(
    ("finish", "truncated", "retries", "memory_kills", "changed_files", *(one.name for one in fields(Statistics)))
)
"""Facts of an attempt that a judge is told. A new one of the ledger is not told before it stands here."""
_FLAGS = "touched-"
"""Flags of this kind are told; others speak of the score."""

_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMANDS = ("command", "cmd")


def trace_material(
    instruction: str, trajectory: Mapping[str, Any], facts: Mapping[str, Any], characters: int
) -> Material:
    """Return what is shown of an attempt with at most so many characters, blocks and names among them.

    ``trajectory`` is ATIF, ``facts`` the ``trajectory`` of the attempt's line; both may be anybody's, and whatever is
    not as it should be is left out. Of a trace that is too long the instruction, the first and the last steps come
    first, then those that touch what an agent should leave alone, then those that edit files or failed, then the others
    (``cutting.fit``). Facts and names of steps that are not shown have a tenth each.

    Blind: of the facts only those of BLIND are told, of the trajectory only its steps.
    """
    steps = _steps(trajectory)
    pieces = [Piece("instruction", (readable(instruction),), 0)]
    pieces += [
        Piece(f"step {number}", _parts(step), _rank(step, number, len(steps))) for number, step in enumerate(steps, 1)
    ]
    told = _facts(facts, characters // 10)
    fitted = fit(pieces, characters - 2 * (characters // 10))
    notes = [f"{names}: there was no place" for names in _ranges(fitted.dropped)]
    notes += [f"{names}: not shown as a whole" for names in _ranges(fitted.cut)]
    return Material(tuple(fitted.documents), told, some_of(notes, characters // 10))


def _steps(trajectory: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    steps = trajectory.get("steps")
    return [step if isinstance(step, Mapping) else {} for step in steps] if isinstance(steps, list) else []


def _parts(step: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a step as YAML has texts: names at the margin, and all that strangers wrote indented."""
    source = step.get("source")
    message = _text(step.get("message"))
    parts = [_part(source if source in ("system", "user") else "agent", message)]
    if reasoning := _text(step.get("reasoning_content")):
        parts.append(_part("reasoning", reasoning))
    parts += [_part(f"call {_name(call)}", _given(call)) for call in _list(step, "tool_calls")]
    results = _list(step.get("observation"), "results")
    ends = _ends(step) if len(_ends(step)) == len(results) else [""] * len(results)
    parts += [_part(f"output{end}", _text(one.get("content"))) for one, end in zip(results, ends, strict=True)]
    return tuple(parts if len(parts) <= MOST_PARTS else [*parts[: MOST_PARTS - 1], "\n".join(parts[MOST_PARTS - 1 :])])


def _part(name: str, text: str) -> str:
    lines = readable(text).rstrip("\n").split("\n")
    return "\n".join((f"{name}:", *(f"  {line}" for line in lines)))


def _rank(step: Mapping[str, Any], number: int, count: int) -> int:
    if number <= HEAD or number > count - TAIL:
        return 0
    commands = list(_commands(step))
    seen = [look_at(tool, command[:MOST_LOOKED_AT]) for tool, command in commands]
    if any(protected.in_text(command) for _, command in commands) or any(one.protected for one in seen):
        return 1
    edits = any(action.kind == "edit" for one in seen for action in one.actions)
    failed = "malformed" in _extra(step) or any(end not in ("", ", status 0") for end in _ends(step))
    return 2 if edits or failed else 3


def _commands(step: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the tools that a step has called, with what they were given; without calls, what stands in fences."""
    calls = _list(step, "tool_calls")
    for call in calls:
        line = _command_line(call)
        yield (_name(call), readable(_json(call.get("arguments")))) if line is None else (SHELL, readable(line))
    if not calls:
        message = readable(_text(step.get("message"))[:MOST_LOOKED_AT])
        yield from ((SHELL, command) for command in _FENCED.findall(message))


def _ends(step: Mapping[str, Any]) -> list[str]:
    """Return how each command of a step ended, in words."""
    return list(map(_end, _list(_extra(step), "commands")))


def _end(command: Mapping[str, Any]) -> str:
    if command.get("timed_out") is True:
        return ", timed out"
    status = command.get("status")
    return f", status {status}" if isinstance(status, int) else ""


def _extra(step: Mapping[str, Any]) -> Mapping[str, Any]:
    extra = step.get("extra")
    return extra if isinstance(extra, Mapping) else {}


def _list(values: object, name: str) -> list[Mapping[str, Any]]:
    """Return the objects in a list that an object may have."""
    found = values.get(name) if isinstance(values, Mapping) else None
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _name(call: Mapping[str, Any]) -> str:
    return readable_name(_text(call.get("function_name")))


def _given(call: Mapping[str, Any]) -> str:
    """Return what a tool was given: a command line as it is, else the arguments as JSON."""
    line = _command_line(call)
    return _json(call.get("arguments")) if line is None else line


def _command_line(call: Mapping[str, Any]) -> str | None:
    arguments = call.get("arguments")
    if isinstance(arguments, Mapping) and len(arguments) == 1:
        name, value = next(iter(arguments.items()))
        if name in _COMMANDS and isinstance(value, str):
            return value
    return None


def _text(content: object) -> str:
    """Return a message's text; of parts the texts alone."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "\n".join(text for text in texts if isinstance(text, str))
    return ""


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        return "[what no JSON can say]"


def _facts(facts: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """Return the facts that may be told, without the longest ones where they are too long."""
    statistics = facts.get("statistics")
    every = chain(facts.items(), statistics.items() if isinstance(statistics, Mapping) else ())
    told = {name: value for name, value in every if name in BLIND and _is_plain(value)}
    flags = facts.get("flags")
    if isinstance(flags, list | tuple):
        told["flags"] = [one for one in flags if isinstance(one, str) and one.startswith(_FLAGS)]
    while told and len(block("0" * ID_CHARS, "facts", readable(_json(told)))) > limit:
        del told[max(told, key=lambda name: len(_json(told[name])))]
    return told


def _is_plain(value: object) -> bool:
    """Whether a fact is a number, a text, or a list or table of them."""
    inner = list(value.values()) if isinstance(value, Mapping) else value
    return all(
        isinstance(one, str | int | float | None) for one in (inner if isinstance(inner, list | tuple) else [inner])
    )


def _ranges(names: Sequence[str]) -> Iterator[str]:
    """Yield names, those of steps that follow each other as one: ``steps 3-9``."""
    yield from (name for name in names if not name.startswith("step "))
    numbers = [int(name.removeprefix("step ")) for name in names if name.startswith("step ")]
    for _, group in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        yield f"step {run[0]}" if len(run) == 1 else f"steps {run[0]}-{run[-1]}"
