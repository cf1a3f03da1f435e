"""Does a shell text set owners or change users? Where uids cannot be mapped, such a text is not run but n/a.

Command words decide, as tree-sitter's bash grammar sees them: text behind ``eval`` or in another file escapes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from tree_sitter import Node

from pytest_otval.task.bash import bash_root, commands

_USER_WORDS = ("useradd", "adduser", "usermod", "groupadd", "addgroup")
_SWITCH_WORDS = ("su", "sudo", "runuser", "gosu", "su-exec", "setpriv")
OWNER_WORDS = frozenset(("chown", "chgrp", *_USER_WORDS, *_SWITCH_WORDS))
PACKAGE_WORDS = frozenset(("apt", "apt-get", "dpkg"))
"""Package managers of Debian: they set owners, and the ``fakeroot`` program lets them, but only in builds."""

_WRAPPERS = frozenset(("env", "exec", "command", "time", "nohup", "nice", "xargs", "builtin"))
_SHELLS = frozenset(("sh", "bash", "dash", "ash", "zsh"))
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_ROOT = re.compile(r"(root|0)?(:(root|0)?)?")
_MAX_DEPTH = 4
"""How deep ``sh -c`` in ``sh -c`` is looked into."""


def needs_owner(text: str, packages: bool = False) -> tuple[int, str] | None:
    """Return the line (1-based) and the word of the first command that needs owners or users, or None.

    Root as the owner needs nothing. With ``packages``, package managers count as well.
    """
    return _first(text, OWNER_WORDS | PACKAGE_WORDS if packages else OWNER_WORDS, _MAX_DEPTH)


def _first(text: str, wanted: frozenset[str], depth: int) -> tuple[int, str] | None:
    for line, words in _commands(text):
        found = _needed(words, wanted, depth)
        if found:
            return line, found
    return None


def _commands(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each simple command, those in substitutions too, as its line and its words without quotes."""
    for node in commands(bash_root(text.encode(errors="surrogateescape"))):
        words = [_word(child) for child in node.named_children if child.type != "variable_assignment"]
        yield node.start_point.row + 1, words


def _word(node: Node) -> str:
    return re.sub(r"\\(.)|['\"]", r"\1", (node.text or b"").decode(errors="replace"), flags=re.DOTALL)


def _needed(words: list[str], wanted: frozenset[str], depth: int) -> str | None:
    """Return the word for which one command needs owners, or None."""
    while words and (words[0] in _WRAPPERS or words[0].startswith("-") or _ASSIGNMENT.fullmatch(words[0])):
        words = words[1:]
    if not words:
        return None
    name, args = words[0].rsplit("/", 1)[-1], words[1:]
    if name in _SHELLS:
        return _in_shell(args, wanted, depth)
    if name == "find" and ("-exec" in args or "-execdir" in args):
        start = next(index for index, arg in enumerate(args) if arg.startswith("-exec"))
        return _needed(args[start + 1 :], wanted, depth)
    if name == "install":
        return name if any(not _ROOT.fullmatch(owner) for owner in _install_owners(args)) else None
    if name in ("chown", "chgrp"):
        owner = next((arg for arg in args if not arg.startswith("-")), "")
        return None if owner and _ROOT.fullmatch(owner) else name
    return name if name in wanted else None


def _in_shell(args: list[str], wanted: frozenset[str], depth: int) -> str | None:
    """Look into the text that ``sh -c TEXT`` is given."""
    for flag, text in pairwise(args):
        if re.fullmatch(r"-[a-z]*c", flag) and depth:
            found = _first(text, wanted, depth - 1)
            return found[1] if found else None
    return None


def _install_owners(args: list[str]) -> Iterator[str]:
    for index, arg in enumerate(args):
        option = re.fullmatch(r"(?:-o|-g|--owner=|--group=)(.*)", arg)
        if option:
            yield option.group(1) or (args[index + 1] if index + 1 < len(args) else "")
