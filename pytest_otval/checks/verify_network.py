"""What a verifier fetches while it runs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import lru_cache

from pytest_otval.checks import shell_ast as ast
from pytest_otval.checks.context import CheckContext, Source
from pytest_otval.checks.python_ast import parse_python
from pytest_otval.checks.python_fetch import python_fetches
from pytest_otval.checks.registry import Place, check
from pytest_otval.checks.shell import ShellCommand, known_text
from pytest_otval.checks.shell_commands import unwrapped
from pytest_otval.checks.verify_fetch import fetches, shown, unpinned
from pytest_otval.checks.verify_scripts import VerifierScript, verifier_scripts
from pytest_otval.core import Severity

_NO_INDEX = re.compile(
    r"\b(?:PIP_NO_INDEX|UV_OFFLINE|UV_NO_INDEX|npm_config_offline|CARGO_NET_OFFLINE)=[\"']?(?:1|true)"
)
_INDEX_TOOLS = re.compile(r"(?:.*/)?(?:pip[\d.]*|pipx|uvx?|python[\d.]*|npm|npx|cargo)")
_SURE = ("curl", "wget", "git")
"""Programs that fetch whatever is installed already."""
_MOCKS = ("monkeypatch", "mock", "responses", "respx", "httpretty", "vcr", "patch(")
_FETCHERS = ("://", "install", "uvx", "npx")
"""What a Python file holds, one of them, that fetches anything."""


@check(
    "network-at-verify",
    severity=Severity.WARNING,
    family="verify_network",
    explains="What is fetched while the tests run can change or vanish, and a machine without network has none of it.",
    fix="install it in the Dockerfile, or ship it in tests/",
)
def at_verify(context: CheckContext) -> Iterator[Place]:
    """Look for downloads while the tests run; an error where the verifier has no network and they surely happen."""
    for script in verifier_scripts(context):
        fetching = _fetching(script)
        if not fetching:
            continue
        offline = script.step.verifier_network == "no-network"
        certain = set(_certain_lines(script)) if offline else set()
        doomed = [one for one in fetching if one.line in certain and posixpath.basename(one.name) in _SURE]
        names = ", ".join(dict.fromkeys(shown((one.name, *one.args)) for one in doomed or fetching))
        without = "; the verifier has no network" if offline else ""
        severity = Severity.ERROR if doomed else Severity.WARNING
        message = f"fetches while the tests run: {names}{without}"
        yield Place(script.path, message, (doomed or fetching)[0].line, severity)
    yield from _python_at_verify(context)


@lru_cache(maxsize=8)
def _fetching(script: VerifierScript) -> tuple[ShellCommand, ...]:
    """Return the commands of a script that fetch something; two checks ask."""
    return tuple(_found_fetching(script))


def _found_fetching(script: VerifierScript) -> Iterator[ShellCommand]:
    no_index = _NO_INDEX.search(script.text) is not None
    for command in script.script.commands:
        if fetches((command.name, *command.args)):
            words = unwrapped((command.name, *command.args))
            if not (no_index and _INDEX_TOOLS.fullmatch(words[0])):
                yield command


def _certain_lines(script: VerifierScript) -> Iterator[int]:
    """Yield the lines of commands that run whatever happens, and whose failure nothing excuses."""
    for simple in _certain(script.script.body):
        if simple.words:
            yield simple.line


def _certain(node: ast.Node) -> Iterator[ast.Simple]:
    match node:
        case ast.Simple():
            yield node
        case ast.Sequence(body=body) | ast.Pipeline(body=body):
            for one in body:
                if isinstance(one, ast.Simple) and one.words and known_text(one.words[0]) == "exit":
                    return
                yield from _certain(one)
        case ast.AndOr(left=left, right=right, operator="&&"):
            yield from _certain(left)
            yield from _certain(right)
        case ast.Group(body=body):
            yield from _certain(body)


@check(
    "network-unpinned",
    severity=Severity.WARNING,
    family="verify_network",
    explains="A verifier that installs the newest version of a package judges differently from one day to the next.",
    fix="pin the version, as in pytest==8.4.1, or install it in the Dockerfile",
)
def not_pinned(context: CheckContext) -> Iterator[Place]:
    """Look for packages that the verifier installs without a version."""
    for script in verifier_scripts(context):
        for command in _fetching(script):
            packages = unpinned((command.name, *command.args))
            if packages:
                yield Place(script.path, f"takes the newest {', '.join(packages[:5])}", command.line)


def _python_at_verify(context: CheckContext) -> Iterator[Place]:
    for entry in context.test_files:
        source = context.source(entry.path) if entry.path.endswith(".py") else None
        found = None if source is None else _first_fetch(source)
        if found is not None:
            yield Place(entry.path, f"fetches while the tests run: {found[1]}", found[0])


def _first_fetch(source: Source) -> tuple[int, str] | None:
    """Return the line of the first download of a Python file, and what it asks; None for files that use mocks."""
    text = source.text
    if not source.whole or not any(map(text.__contains__, _FETCHERS)) or any(map(text.lower().__contains__, _MOCKS)):
        return None
    module = parse_python(text)
    return None if module is None else min(python_fetches(module), default=None)
