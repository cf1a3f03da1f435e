"""How a command starts pytest: where its words begin, and which Python runs it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from pytest_otval.checks.shell_commands import unwrapped
from pytest_otval.harden.tree import UNKNOWN, Command

Form = Literal["bare", "module", "uv", "done", "unclear"]
"""``pytest``, ``python -m pytest``, by uv; run by an isolated Python already; nobody can tell."""

_PYTEST = ("pytest", "py.test")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_UV_VALUES = frozenset(("-w", "--with", "--from", "-p", "--python", "--with-requirements", "--with-editable"))
_SAYS_ONLY = re.compile(
    r"echo|printf|pip3?|apt|apt-get|apk|dnf|yum|[ef]?grep|command|which|type|p?kill|pgrep|test|\[\[?|uv|rm|cp|mv|mkdir"
    r"|touch|cat|tee|export|hash|ls|find|sed|awk|pipx|local|readonly|declare"
)
_MENTION = re.compile(r"(?:^|[\s/;&|(])(?:pytest|py\.test)(?:$|[\s;&|)])")
_PLUGINS = {
    "pytest_jsonreport": r"--json-report\b.*",
    "pytest_cov": r"--cov\b.*",
    "pytest_timeout": r"--timeout\b.*",
    "pytest_html": r"--(?:html|self-contained)\b.*",
    "xdist": r"--(?:dist|numprocesses)\b.*|-n\d*",
    "pytest_rerunfailures": r"--reruns\b.*",
    "pytest_asyncio": r"--asyncio\b.*",
    "pytest_benchmark": r"--benchmark\b.*",
    "pytest_forked": r"--forked\b.*",
    "pytest_django": r"--ds\b.*",
}
"""Options that plugins of pytest bring, by the plugin's module."""
_SYSTEM = ("/usr/bin", "/usr/local/bin", "/bin")


@dataclass(frozen=True, slots=True)
class Call:
    """A command that starts pytest."""

    form: Form
    first: int = 0
    """The word with which the start of pytest begins, behind ``timeout 60`` and its like."""
    last: int = 0
    """The word with which it ends: what follows are pytest's own words."""
    python: str = "python3"
    """The Python that runs it, as the script calls it."""
    environment: str = ""
    """The folder of the environment whose pytest or Python is called by its path."""


def call_of(command: Command) -> Call | None:
    """Return how a command starts pytest; None where it does not."""
    texts = command.texts
    if not texts:
        return None
    rest = unwrapped(texts)
    first = len(texts) - len(rest)
    uv = next((at for at, pair in enumerate(pairwise(texts[:first])) if pair == ("uv", "run")), None)
    if uv is not None:
        return _by_uv(texts, uv)
    if not rest:
        return None
    name = posixpath.basename(rest[0])
    if name in _PYTEST:
        return Call("bare", first, first, environment=_environment(rest[0]))
    if name == "uvx" or (name == "uv" and rest[1:2] in (["run"], ["tool"])):
        return _by_uv(texts, first)
    if "OT_PYTHON" in command.words[first].source:
        return Call("done") if "pytest" in rest else None
    if _PYTHON.fullmatch(name) or UNKNOWN in rest[0]:
        return _by_module(command, rest, first)
    if _SAYS_ONLY.fullmatch(name) or "install" in rest[1:2] or not any(_MENTION.search(text) for text in rest[1:]):
        return None
    return Call("unclear")


def _by_uv(texts: Sequence[str], first: int) -> Call | None:
    for at in range(first + 1, len(texts)):
        if texts[at] in _PYTEST and texts[at - 1] not in _UV_VALUES:
            return Call("uv", first, at)
    return None


def _by_module(command: Command, rest: Sequence[str], first: int) -> Call | None:
    at = next((at for at, pair in enumerate(pairwise(rest)) if pair == ("-m", "pytest")), None)
    if at is None:
        return None
    if "-I" in rest[:at]:
        return Call("done")
    if UNKNOWN in rest[0]:
        return Call("unclear")
    options = rest[1:at]
    if any(option not in ("-u", "-B", "-s", "-E", "-P") for option in options):
        return Call("unclear")
    return Call("module", first, first + at + 1, command.words[first].source, _environment(rest[0]))


def _environment(program: str) -> str:
    folder, name = posixpath.split(posixpath.dirname(program))
    return folder if name == "bin" and UNKNOWN not in folder and f"{folder}/bin" not in _SYSTEM else ""


def plugin_of(option: str) -> str | None:
    """Return the module of the plugin that brings an option; None for one that pytest has itself."""
    return next((name for name, form in _PLUGINS.items() if re.fullmatch(form, option)), None)
