"""What one simple command does to the state of a test script."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from pytest_otval.checks import shell_ast as ast
from pytest_otval.checks.flow_state import NONZERO, UNKNOWN, Event, Reward, State, reward_of, reward_target
from pytest_otval.checks.flow_values import value
from pytest_otval.checks.shell import known_text
from pytest_otval.checks.shell_commands import Kind, interprets_text, kind_of, runs_test_file, unwrapped

_MENTION = re.compile(r"reward|/logs/verifier/?(?=[\s\"');,\]]|$)", re.IGNORECASE)
"""A reward by name, or its folder alone: who is given either may write there."""
_READS_ONLY = frozenset(
    ("echo", "printf", "mkdir", "cat", "ls", "grep", "egrep", "head", "tail", "chmod", "chown", "wc", "find", "test")
)
_DECLARES = frozenset(("export", "declare", "local", "readonly", "typeset"))


class Facts(Protocol):
    """What a command's meaning depends on, beside the state."""

    @property
    def delegates(self) -> bool:
        """Whether another file of /tests has to do with rewards, so that code run from there may write one."""


def _assigned(node: ast.Simple, state: State) -> State:
    """Return the state after the assignments of a command."""
    for one in node.assignments:
        if one.value is not None:
            state = state.put(one.name, value(one.value, state))
    return state


def set_options(words: Sequence[str], state: State) -> State:
    """Return the state after ``set`` with some words, or a shebang's options."""
    rest = list(words)
    while rest and (word := rest.pop(0))[:1] in "-+" and len(word) > 1:
        on = word[0] == "-"
        if "e" in word[1:]:
            state = state._replace(errexit=on)
        if "o" in word[1:] and rest:
            option = rest.pop(0)
            if option == "errexit":
                state = state._replace(errexit=on)
            elif option == "pipefail":
                state = state._replace(pipefail=on)
    return state


def set_trap(words: Sequence[str], state: State) -> State:
    """Return the state after ``trap`` with some words."""
    if len(words) < 2:
        return state
    action = "" if words[0] == "-" else words[0]
    if {"EXIT", "0"} & set(words[1:]):
        state = state._replace(exit_trap=action)
    if "ERR" in words[1:]:
        state = state._replace(err_trap=action)
    return state


def written_text(node: ast.Simple, words: Sequence[str], state: State) -> str:
    """Return what a command writes to its output, UNKNOWN where only a run can tell."""
    name, args = (words[0], list(words[1:])) if words else ("", [])
    if name == "echo":
        while args and re.fullmatch(r"-[neE]+", args[0]):
            args.pop(0)
        return " ".join(args)
    if name == "printf" and args:
        return _printf(args)
    if name == "cat" and not args and node.stdin is not None:
        return value(node.stdin, state)
    return UNKNOWN


def _printf(args: Sequence[str]) -> str:
    form, *rest = [arg for arg in args if arg != "--"]
    pending = list(rest)
    form = re.sub(r"%[-\d.]*[sdfgi]", lambda _: pending.pop(0) if pending else "", form.replace("%%", "\2"))
    text = form.replace("\\n", "\n").replace("\\t", "\t").replace("\2", "%")
    return UNKNOWN if pending else text


def redirected(redirects: Sequence[ast.Redirect], text: str, state: State) -> State:
    """Return the state after output of a text to the files of some redirects."""
    for one in redirects:
        target = None if one.errors_only else reward_target(value(one.target, state))
        if target is not None:
            appended = one.append and {"txt": state.txt, "json": state.json}.get(target) is not Reward.NONE
            state = state.write(target, Reward.UNKNOWN if appended else reward_of(text, target))
    return state


def _file_effects(node: ast.Simple, words: Sequence[str], piped: str, state: State) -> State:
    """Return the state after what a command does to reward files, but for its redirects."""
    rest = unwrapped(words)
    name, args = (posixpath.basename(rest[0]), rest[1:]) if rest else ("", [])
    paths = [arg for arg in args if not arg.startswith("-")]
    match name:
        case "rm":
            for path in paths:
                state = _removed(path, state)
        case "tee":
            text = UNKNOWN if "-a" in args else piped
            for target in map(reward_target, paths):
                state = state.write(target, reward_of(text, target))
        case "cp" | "mv" | "ln" | "install" | "touch":
            if paths and (reward_target(paths[-1]) or _MENTION.search(paths[-1])):
                state = state.write(reward_target(paths[-1]) or "maybe", Reward.UNKNOWN)
        case _:
            if rest and name not in _READS_ONLY and _may_write(node, words, state):
                state = state.write("maybe", Reward.UNKNOWN)
    return state


def _removed(path: str, state: State) -> State:
    folder = posixpath.normpath(path) == "/logs/verifier"
    for target in ("txt", "json"):
        name = f"/logs/verifier/reward.{target}"
        if folder or path == name or path in ("/logs/verifier/*", "/logs/verifier/reward*", "/logs/verifier/reward.*"):
            state = state._replace(txt=Reward.NONE) if target == "txt" else state._replace(json=Reward.NONE)
    return state.write("maybe", Reward.UNKNOWN) if reward_target(path) == "maybe" else state


def _may_write(node: ast.Simple, words: Sequence[str], state: State) -> bool:
    texts = [*words, value(node.stdin, state), *(value(one.value, state) for one in node.assignments)]
    return any(_MENTION.search(text) for text in texts)


def substitution_effects(node: ast.Simple, facts: Facts, state: State) -> State:
    """Return the state after the ``$(...)`` in a command's words, of which only possible rewards matter."""
    for body in node.substitutions:
        for inner in ast.simple_commands(body):
            known = [known_text(word) for word in inner.words]
            runner = bool(known) and kind_of(known) is Kind.RUNNER
            state = state._replace(ran=True) if runner else state
            if (
                known
                and known[0] not in _READS_ONLY
                and (_code_may_write(known, kind_of(known), inner, facts) or _MENTION.search(inner.source))
            ):
                state = state.write("maybe", Reward.UNKNOWN)
    return state


def _code_may_write(words: Sequence[str], kind: Kind, node: ast.Simple, facts: Facts) -> bool:
    if kind is Kind.RUNNER:
        return facts.delegates
    if kind is not Kind.CODE:
        return False
    rest = unwrapped(words)
    # Code that stands in the script, or in /tests, and does not mention a reward, writes none; other code may.
    return facts.delegates or not (interprets_text(rest, node.stdin is not None) or runs_test_file(rest))


def ends(node: ast.Simple, words: Sequence[str], piped: str | None, facts: Facts, state: State) -> Iterator[State]:
    """Yield the ways a command can end that does not change where the script goes.

    ``words`` are those of ``node`` as far as they are known, ``piped`` the text that a pipe hands to it, if any.
    """
    name, args = (words[0], words[1:]) if words else ("", [])
    if not words:
        yield from _assignments_alone(node, state)
    elif name == "set":
        yield set_options(args, state)._replace(status="0")
    elif name == "trap":
        yield set_trap(args, state)._replace(status="0")
    elif name == "eval":
        yield state.write("maybe", Reward.UNKNOWN)
    elif name == "exec":
        yield state._replace(status="0")
    else:
        # Assignments in front of other commands are for these alone.
        declared = _assigned(node, state) if name in _DECLARES else state
        touched = _file_effects(node, words, UNKNOWN if piped is None else piped, declared)
        if node.redirects:
            touched = redirected(node.redirects, written_text(node, words, state), touched)
        yield from _program(node, words, piped is not None, facts, touched)


def _assignments_alone(node: ast.Simple, state: State) -> Iterator[State]:
    """Yield the ends of assignments alone: their status is that of the last ``$(...)`` in them."""
    after = redirected(node.redirects, UNKNOWN, _assigned(node, state))
    yield after._replace(status="0")
    parts = [part for one in node.assignments if one.value is not None for part in one.value.parts]
    bodies = [part.body for part in parts if isinstance(part, ast.Substitution)]
    if bodies:
        inner = bodies[-1]
        words = [known_text(word) for word in inner.words] if isinstance(inner, ast.Simple) else []
        if words and kind_of(words) is Kind.RUNNER:
            failed = after.failed or Event(node.line, shown(node.source))
            yield after._replace(status=NONZERO, failed=failed)
        else:
            yield after._replace(status=NONZERO, certain=False)


def _program(node: ast.Simple, words: Sequence[str], reads_pipe: bool, facts: Facts, state: State) -> Iterator[State]:
    kind = kind_of(words, reads_pipe, value(node.stdin, state))
    if _code_may_write(words, kind, node, facts):
        state = state.write("maybe", Reward.UNKNOWN)
    if "false" in words and unwrapped(words)[:1] == ["false"]:
        yield state._replace(status=NONZERO)
    elif kind is Kind.ALWAYS_ZERO:
        yield state._replace(status="0")
    elif kind is Kind.RUNNER:
        yield state._replace(status="0", ran=True)
        failed = state.failed or Event(node.line, shown(node.source))
        yield state._replace(status=NONZERO, ran=True, failed=failed)
    else:
        yield state._replace(status="0")
        yield state._replace(status=NONZERO, certain=False)


def shown(source: str) -> str:
    """Return a command as it is shown to a user: one line of bounded length."""
    line = " ".join(source.replace("\\\n", " ").split())
    return line if len(line) <= 60 else line[:57] + "..."
