"""What a command of an agent does, as far as its text tells: which kinds of things, to which files."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_otval.checks import shell_ast as ast
from pytest_otval.checks.shell import known_text, parse_shell
from pytest_otval.checks.shell_commands import interprets_text, is_runner, runs_test_file, unwrapped
from pytest_otval.llm import network, protected
from pytest_otval.llm.steps import SHELL

KINDS = ("edit", "read", "search", "test", "web", "install", "git", "run", "other")

UNKNOWN = "?"
"""The name of a program that is not known before the command runs, or that is no name."""

_MAX_NESTED = 3
"""How deep ``bash -c`` in ``bash -c`` is looked into."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_READS = _names("cat head tail less more nl bat xxd od hexdump strings sed awk gawk wc diff cmp jq")
_READS_SCRIPT_FIRST = _names("sed awk gawk jq")
_SEARCHES = _names("grep egrep fgrep rg ag ack find fd ls tree locate which")
_SHELLS = _names("bash sh dash zsh")
_RUNS = re.compile(
    r"python[\d.]*|pypy[\d.]*|node|deno|bun|ruby|perl|php|Rscript|java|lua|go|cargo|make|cmake|gcc|g\+\+|cc|clang|rustc"
    r"|javac|mvn|gradle|npm|npx|yarn|pnpm|dotnet|tsc|bazel|bash|sh|dash|zsh"
)
_NAME = re.compile(r"[A-Za-z0-9_.+\[-]{1,40}")
_SCRATCH = re.compile(r"/dev/|/tmp/|/var/tmp/|/proc/")
_TEST_NAME = re.compile(r"(?:test_[^/]*|[^/]*_test)\.\w+|[^/]*\.(?:test|spec)\.\w+")
_WRITES = re.compile(
    r"\bopen\(\s?['\"]([^'\"\n]{1,300})['\"]\s?,\s?(?:mode=)?['\"][wax+]|\bopen\([^)\n]{1,300},\s?(?:mode=)?['\"][wax]"
    r"|\.write_(?:text|bytes)\(|\bwriteFile(?:Sync)?\("
)
_PATCHED = re.compile(r"^(?:\+\+\+ (?:b/)?|\*\*\* (?:Update|Add|Delete) File: )([^\t\n]+)", re.MULTILINE)
_GIT_EDITS = _names("apply am checkout restore reset revert stash merge rebase cherry-pick pull switch mv rm clean")
_GIT_SEARCHES = _names("grep ls-files ls-tree")

_TOOL_KINDS = (
    ("edit", re.compile(r"edit|write|creat|replace|insert|patch|delete", re.IGNORECASE)),
    ("web", re.compile(r"web|browse|fetch|url|http", re.IGNORECASE)),
    ("search", re.compile(r"search|grep|find|glob|list|\bls\b", re.IGNORECASE)),
    ("read", re.compile(r"read|view|open|cat", re.IGNORECASE)),
)


@dataclass(frozen=True, slots=True)
class Action:
    """One program that a command starts, or one file that it writes."""

    kind: str
    """One of KINDS."""
    path: str = ""
    """The file that is read or edited; empty where the text does not say."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a command was seen to do, in the order of its text."""

    actions: tuple[Action, ...] = ()
    verbs: tuple[str, ...] = ()
    """The programs, without what only starts them (``timeout 60``, ``env``); of another tool its name."""
    protected: frozenset[str] = frozenset()
    """Names of ``protected.NAMES``."""
    hosts: frozenset[str] = frozenset()
    """Other machines that its text names."""
    uses_network: bool = False
    understood: bool = True
    """Whether bash's grammar takes it. Of one that it does not take only ``protected`` and ``hosts`` are known."""


def look_at(tool: str, command: str) -> Seen:
    """Return what a command does. No program is run, so what it computes is not seen."""
    if tool != SHELL:
        return _of_tool(tool, command)
    look = _Look()
    if not look.script(command, 0):
        return Seen((), (), protected.in_text(command), network.hosts_in(command), understood=False)
    return Seen(
        tuple(look.actions), tuple(look.verbs), frozenset(look.protected), frozenset(look.hosts), look.uses_network
    )


def is_test_file(path: str) -> bool:
    """Whether a file's name is that of a file of tests."""
    return _TEST_NAME.fullmatch(posixpath.basename(path)) is not None


class _Look:
    """One pass over a command line."""

    def __init__(self) -> None:
        self.actions: list[Action] = []
        self.verbs: list[str] = []
        self.protected: set[str] = set()
        self.hosts: set[str] = set()
        self.uses_network = False

    def script(self, text: str, depth: int) -> bool:
        """Look at all commands of a script; return False where it is none."""
        script = parse_shell(text)
        if script is None:
            return False
        for simple in ast.simple_commands(script.body):
            self.simple(simple, depth)
        return True

    def simple(self, simple: ast.Simple, depth: int) -> None:
        """Look at one command with its redirects."""
        words = [known_text(word) for word in simple.words]
        rest = unwrapped(words)
        stdin = known_text(simple.stdin) if simple.stdin is not None else ""
        edited = [] if not rest else [action for action in _actions(rest, stdin) if not _is_scratch(action)]
        targets = [known_text(one.target) for one in simple.redirects if not one.errors_only]
        edited += [Action("edit", _known(target)) for target in targets if not _SCRATCH.match(target)]
        self.actions += edited
        self.protected |= protected.in_command(words, rest, targets, stdin)
        self.protected |= protected.in_edits(action.path for action in edited if action.kind == "edit")
        self.protected |= protected.in_assignments(assignment.name for assignment in simple.assignments)
        self.hosts |= network.hosts_in(" ".join((*words, stdin)))
        self.uses_network |= network.is_used(words, rest, stdin)
        if rest:
            self.verbs.append(_verb(rest[0]))
            self.nested(rest, stdin, depth)

    def nested(self, rest: Sequence[str], stdin: str, depth: int) -> None:
        """Look at what a shell is given as text."""
        if posixpath.basename(rest[0]) not in _SHELLS or depth == _MAX_NESTED:
            return
        flag = next((index for index, arg in enumerate(rest) if re.fullmatch(r"-[a-z]*c", arg)), None)
        text = stdin if flag is None else "".join(rest[flag + 1 : flag + 2])
        self.script(text, depth + 1)


def _is_scratch(action: Action) -> bool:
    return action.kind == "edit" and _SCRATCH.match(action.path) is not None


def _known(path: str) -> str:
    return "" if "\0" in path else path


def _verb(word: str) -> str:
    name = posixpath.basename(word)
    return name if _NAME.fullmatch(name) else UNKNOWN


def _actions(rest: Sequence[str], stdin: str) -> Iterator[Action]:
    """Yield what an unwrapped command does."""
    edited = list(_edited(rest, stdin))
    if edited:
        yield from (Action("edit", _known(path)) for path in edited)
        return
    name, files = posixpath.basename(rest[0]), _files(rest[1:])
    if name in _READS:
        read = _after_script(rest[1:]) if name in _READS_SCRIPT_FIRST else files
        yield from (Action("read", _known(path)) for path in read)
    else:
        yield Action(_kind(name, rest))


def _kind(name: str, rest: Sequence[str]) -> str:
    runs = _RUNS.fullmatch(name) is not None
    if is_runner(rest) or runs_test_file(rest) or is_test_file(name) or (runs and any(map(is_test_file, rest[1:2]))):
        return "test"
    if network.installs(rest):
        return "install"
    if network.is_client(rest):
        return "web"
    if name == "git":
        return "search" if rest[1:2] and rest[1] in _GIT_SEARCHES else "git"
    if name in _SEARCHES:
        return "search"
    return "run" if runs or "/" in rest[0] else "other"


def _edited(rest: Sequence[str], stdin: str) -> Iterator[str]:
    """Yield the files that an unwrapped command writes by itself, those of its redirects excepted."""
    name, args = posixpath.basename(rest[0]), rest[1:]
    files = _files(args)
    if name in ("sed", "perl") and any(re.match(r"-[a-zA-Z]*i|--in-place", arg) for arg in args):
        yield from _after_script(args)
    elif name in ("tee", "rm", "touch", "truncate", "unlink", "ed", "ex"):
        yield from files
    elif name in ("mv", "cp", "ln", "install", "rsync") and len(files) > 1:
        yield files[-1]
    elif name in ("patch", "apply_patch") or (name == "git" and args[:1] and args[0] in _GIT_EDITS):
        yield from _PATCHED.findall("\n".join((*args, stdin))) or [""]
    elif interprets_text(rest, stdin != ""):
        yield from (found[1] or "" for found in _WRITES.finditer("\n".join((*args, stdin))))


def _files(args: Sequence[str]) -> list[str]:
    """Return the arguments that are no options and no numbers of lines."""
    return [arg for arg in args if arg and not arg.startswith(("-", "+")) and not arg.isdigit()]


def _after_script(args: Sequence[str]) -> list[str]:
    """Return the files of sed, perl and their like, whose script is the first argument or stands behind ``-e``."""
    scripts = {index + 1 for index, arg in enumerate(args) if arg in ("-e", "-pe", "-ne", "-f", "--expression")}
    files = _files([arg for index, arg in enumerate(args) if index not in scripts])
    return files if scripts else files[1:]


def _of_tool(tool: str, command: str) -> Seen:
    """Return what another tool does, by its name and by the names of its arguments."""
    arguments = _arguments(command)
    said = (arguments.get("command", ""), tool)
    kind = next((kind for text in said for kind, name in _TOOL_KINDS if name.search(text)), "other")
    path = next((arguments[key] for key in ("path", "file_path", "filename", "file") if key in arguments), "")
    touched = protected.in_text(command) | (protected.in_edits([path]) if kind == "edit" else frozenset())
    hosts = network.hosts_in(command) if kind == "web" else frozenset()
    return Seen((Action(kind, path),), (_verb(tool),), touched, hosts, uses_network=kind == "web")


def _arguments(text: str) -> dict[str, str]:
    """Return the arguments that are texts; none where they are no JSON object."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}
