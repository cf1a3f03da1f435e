"""Statements that only fetch pytest: what a script does not need where its Python is given to it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence, Set

from tree_sitter import Node as Syntax

from pytest_otval.harden.tree import Command, Edits, commands, is_guarded, nodes, plain_words, to_text

_STATEMENTS = frozenset(("command", "redirected_statement", "list", "pipeline", "negated_command", "if_statement"))
_TOOLS = frozenset(("curl", "wget", "ca-certificates", "python3-pip", "python3-venv", "python3-pytest", "pip", "uv"))
_PACKAGE = re.compile(r"(?:pytest|pytest-[\w-]*ctrf|pytest-json-ctrf|pip|uv)(?:[=<>~!\[].*)?")
_BESIDE = frozenset(("true", ":", "tail", "head", "exit", "echo", "cat"))
_LISTS = re.compile(r"-[rf]+|/var/lib/apt/lists(?:/\*|/)?")
_SHELLS = frozenset(("sh", "bash"))
_NOWHERE = frozenset((b"/dev/null", b"/dev/stdout", b"/dev/stderr"))
_REDIRECTS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
_VALUES = frozenset(("-i", "--index-url", "--python", "-p", "--timeout", "--retries"))
_PIPS = (["pip"], ["pip3"], ["python", "-m", "pip"], ["python3", "-m", "pip"], ["uv", "pip"])

BEGIN, END = 'if [ -z "${OT_PYTHON:-}" ]; then\n', "\nfi"
GIVEN = 'if [ -n "${OT_PYTHON:-}" ]; then '
"""In front of what a script does where a Python is given; behind ``else`` stands what it did before."""


def guard(root: Syntax, edits: Edits, distributions: Set[str] = frozenset()) -> None:
    """Let statements at the top of a script that only fetch pytest run where no Python is given.

    ``distributions``: what else the runtime has, so that nobody has to fetch it.
    """
    run: list[Syntax] = []
    for child in [*root.children, None]:
        if (
            child is not None
            and child.type in _STATEMENTS
            and _only_prepares(child, distributions)
            and not is_guarded(child)
        ):
            run.append(child)
        elif run and (child is None or child.type not in ("comment", "\n", ";")):
            edits.insert(run[0].start_byte, BEGIN)
            edits.insert(run[-1].end_byte, END)
            run = []


def without_alternatives(root: Syntax, source: bytes, edits: Edits) -> None:
    """Take out what a hardened script does only where no Python is given."""
    for node in nodes(root):
        if node.type != "if_statement":
            continue
        text = to_text(node.text or b"")
        if text.startswith(BEGIN):
            end = node.end_byte + (source[node.end_byte : node.end_byte + 1] == b"\n")
            edits.replace(node.start_byte, end, "")
        elif text.startswith(GIVEN) and (otherwise := node.children[-2]).type == "else_clause":
            given = text[len(GIVEN) : otherwise.start_byte - node.start_byte].strip().removesuffix(";")
            edits.replace(node.start_byte, node.end_byte, given)


def _only_prepares(statement: Syntax, distributions: Set[str]) -> bool:
    found = list(commands(statement))
    prepare = [_prepares(one, distributions) for one in found]
    if to_text(statement.text or b"").startswith((BEGIN, GIVEN)):
        return False
    prepares = any(prepare) and all(does or _is_beside(one) for does, one in zip(prepare, found, strict=True))
    return prepares and not any(_leaves_something(node, distributions) for node in nodes(statement))


def _is_beside(command: Command) -> bool:
    """Whether a command may go where what fetches pytest goes: a shell only where it runs what is piped to it."""
    texts = command.texts
    asks = texts[:1] == ["command"] and texts[1:2] in (["-v"], ["-V"])
    cleans = texts[:1] == ["rm"] and all(_LISTS.fullmatch(text) for text in texts[1:])
    return asks or cleans or texts[0] in _BESIDE or (texts[0] in _SHELLS and (not texts[1:] or texts[1] in ("-s", "-")))


def _leaves_something(node: Syntax, distributions: Set[str]) -> bool:
    """Whether a piece of a statement sets a variable, or reads or writes a file for what is not fetching pytest."""
    if node.type == "variable_assignment":
        return node.parent is None or node.parent.type != "command"
    if node.type not in _REDIRECTS:
        return False
    target = node.child_by_field_name("destination")
    if target is not None and (target.type == "number" or target.text in _NOWHERE):
        return False
    above = node.parent
    while above is not None and above.type == "heredoc_redirect":
        above = above.parent
    # The grammar ties a redirect to a whole list, a shell to its last command.
    found = list(commands((above and above.child_by_field_name("body")) or above or node))
    return not (found and _prepares(found[-1], distributions))


def _prepares(command: Command, distributions: Set[str]) -> bool:
    texts = command.texts
    name = posixpath.basename(texts[0])
    if name in ("curl", "wget"):
        return any("astral.sh/uv" in text for text in texts)
    if name in ("source", "."):
        return texts[-1].endswith(("/.local/bin/env", "/.cargo/env"))
    if name in ("apt-get", "apt", "apk"):
        plain = plain_words(texts[1:], _VALUES)
        return plain == ["update"] or (plain[:1] in (["install"], ["add"]) and _TOOLS.issuperset(plain[1:]))
    if texts[:2] in (["uv", "venv"], ["uv", "init"]) or texts[1:3] == ["-m", "venv"]:
        return True
    if texts[:2] == ["uv", "add"]:
        return _all_packages(texts[2:], distributions)
    for pip in _PIPS:
        if texts[: len(pip) + 1] == [*pip, "install"]:
            return _all_packages(texts[len(pip) + 1 :], distributions)
    return False


def _all_packages(words: Sequence[str], distributions: Set[str]) -> bool:
    plain = plain_words(words, _VALUES)
    names = (re.sub(r"[-_.]+", "-", re.split(r"[=<>~!\[; ]", word)[0]).lower() for word in plain)
    return bool(plain) and all(
        _PACKAGE.fullmatch(word) or name in distributions for word, name in zip(plain, names, strict=True)
    )
