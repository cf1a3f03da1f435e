"""Which calls of a Python file ask another machine for something."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pytest_otval.checks.python_ast import calls, dotted
from pytest_otval.checks.shell import parse_shell
from pytest_otval.checks.verify_fetch import fetches, remote, shown

_ASKS = re.compile(
    r"(?:requests|httpx)\.(?:get|post|put|patch|delete|head|options|request|stream)|(?:urllib\.request\.)?url(?:open|retrieve)"
    r"|(?:urllib\.)?request\.url(?:open|retrieve)"
)
_STARTS = re.compile(r"(?:subprocess\.)?(?:run|call|check_call|check_output|Popen)|os\.(?:system|popen)")


def python_fetches(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line of each call that asks another machine, and what it asks for, where its arguments tell."""
    found = ((call.lineno, _asked(call)) for call in calls(module))
    return ((line, asked) for line, asked in found if asked)


def _asked(call: ast.Call) -> str | None:
    """Return what a call asks another machine for, where its arguments tell."""
    name, first = dotted(call.func), call.args[0] if call.args else None
    if _ASKS.fullmatch(name):
        urls = [arg.value for arg in call.args[:2] if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        return next((url for url in urls if remote(url)), None)
    if not _STARTS.fullmatch(name) or first is None:
        return None
    for words in _commands(first):
        if fetches(words):
            return shown(words)
    return None


def _commands(node: ast.expr) -> Iterator[tuple[str, ...]]:
    """Yield the commands that a subprocess call starts: a list of constants, or a text for a shell."""
    if isinstance(node, ast.List | ast.Tuple) and node.elts:
        words = [one.value if isinstance(one, ast.Constant) else "\0" for one in node.elts]
        yield tuple(word if isinstance(word, str) else "\0" for word in words)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        script = parse_shell(node.value)
        for command in script.commands if script is not None else ():
            yield (command.name, *command.args)
