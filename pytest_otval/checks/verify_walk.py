"""What a verifier's shell script runs and writes.

Commands are taken in the order of the text, with what is known of variables and of the working directory. What is not
known stays a NUL character, and nothing is said about a path that holds one.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from pytest_otval.checks import shell_ast as ast
from pytest_otval.checks.shell import ShellScript, parse_shell
from pytest_otval.checks.shell_commands import unwrapped

UNKNOWN = "\0"
WORKDIR = "."
"""The image's working directory, whose path the scripts do not tell."""

_INTERPRETER = re.compile(r"(?:ba|da|z)?sh|(?:python|pypy)[\d.]*|node|ruby|perl|php|Rscript|lua")
_SHELL = re.compile(r"(?:ba|da|z)?sh")
_BUILDERS = re.compile(
    r"make|gmake|cmake|ninja|meson|(?:\S+-)?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+)(?:-\d+)?|javac|cargo|go|rustc|tsc"
    r"|mvn|mvnw|gradle|gradlew|dotnet|bazel|swift|swiftc|ghc|stack|cabal|npm|yarn|pnpm|zig|dune|nvcc|gfortran"
)
_COPIERS = frozenset(("cp", "mv", "install", "rsync", "ln"))
_OUTPUT_FLAGS = frozenset(("-o", "-O", "--output", "--output-document", "-d", "-C", "-t", "--target", "--prefix"))
_VALUE_OPTIONS = frozenset(
    ("-W", "-X", "-O", "+O", "-o", "-r", "-I", "--rcfile", "--init-file", "--loader", "--import", "--require")
)
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_PYTHON_VALUE_OPTIONS = frozenset(("-W", "-X"))
_PYTEST = ("pytest", "py.test")
_LAUNCHERS = frozenset(("uvx", "uv", "pipx", "coverage", "conda", "micromamba", "xvfb-run"))
_ASKS_ONLY = frozenset(("--version", "-V", "--help", "-h", "--collect-only", "--co", "--fixtures"))
_BUILT = re.compile(r"(?:^|/)(?:build|target|dist|out|_build)[\w.-]*/")
_MAX_NESTING = 3


@dataclass(frozen=True, slots=True)
class Run:
    """A command that hands a file to a program: a script to an interpreter, tests to pytest, or the file itself."""

    how: Literal["sources", "runs", "tests"]
    path: str
    """Absolute; or below ``.``, the image's working directory; or below ``$HOME``."""
    line: int
    made: bool
    """The script itself has put it there."""
    words: tuple[str, ...]
    """The whole command."""
    folder: str
    """Where it runs, written as ``path`` is."""


@dataclass(slots=True)
class Walk:
    """What a script has done so far, in the order of its text."""

    variables: dict[str, str] = field(default_factory=lambda: {"HOME": "$HOME"})
    folder: str = WORKDIR
    runs: list[Run] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    """Files that the script has written and folders that it has filled."""
    wrote_unknown: bool = False
    """It has copied or unpacked something to a place that is not known."""
    installed: bool = False
    """It has run an installer from the network, which brings set-up scripts of its own."""
    built: bool = False
    """It has compiled something, so that programs that appear in the tree are its own."""
    nesting: int = 0
    words: tuple[str, ...] = ()
    """The command at hand."""
    line: int = 1

    def made(self, path: str) -> bool:
        """Whether the script itself has put a file there."""
        place = path
        while not self.wrote_unknown and place not in self.written:
            above = posixpath.dirname(place)
            if above in ("", place):
                return False
            place = above
        return True


@lru_cache(maxsize=64)
def walk(text: str, folder: str = WORKDIR) -> Walk | None:
    """Return what a shell script does when it is started in a folder, or None where it cannot be parsed."""
    script = parse_shell(text)
    if script is None:
        return None
    state = Walk(folder=folder)
    _follow(script, state)
    return state


def _follow(script: ShellScript, state: Walk) -> None:
    for simple in ast.simple_commands(script.body):
        words = tuple(_value(word, state) for word in simple.words)
        if words:
            state.words = words
            state.line = simple.line if state.nesting == 0 else state.line
            _command(words, state)
        for one in simple.assignments:
            if one.value is not None:
                state.variables[one.name] = _value(one.value, state)
        for redirect in simple.redirects:
            _wrote(_value(redirect.target, state), state)


def _value(word: ast.Word, state: Walk) -> str:
    return "".join(_part(part, state) for part in word.parts)


def _part(part: ast.Part, state: Walk) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, ast.Variable):
        known = state.variables.get(part.name)
        if known is None and part.default is not None:
            return _value(part.default, state)
        return UNKNOWN if known is None else known
    return UNKNOWN


def placed(path: str, folder: str) -> str:
    """Return a path joined to a folder, normalised; UNKNOWN where either is not known."""
    if path.startswith("~/"):
        path = f"$HOME{path[1:]}"
    if UNKNOWN in path:
        return UNKNOWN
    if path.startswith(("/", "$HOME")):
        return posixpath.normpath(path)
    return UNKNOWN if UNKNOWN in folder else posixpath.normpath(posixpath.join(folder, path))


def _wrote(path: str, state: Walk) -> None:
    place = placed(path, state.folder)
    if place != UNKNOWN:
        state.written.add(place)


def _filled(path: str, state: Walk) -> None:
    """Note a folder or file that something was copied to or unpacked in."""
    place = placed(path, state.folder)
    if place == UNKNOWN:
        state.wrote_unknown = True
    else:
        state.written.add(place)


def _command(words: Sequence[str], state: Walk) -> None:
    rest = unwrapped(words)
    if not rest:
        return
    name, args = posixpath.basename(rest[0]), rest[1:]
    plain = [arg for arg in args if not arg.startswith("-")]
    _outputs(name, args, plain, state)
    if name in ("cd", "pushd"):
        state.folder = placed(plain[0], state.folder) if plain else UNKNOWN
    elif rest[0] in ("source", "."):
        for path in plain[:1]:
            _run("sources", path, state)
    elif name == "eval":
        _nested(" ".join(args), state)
    elif name in ("su", "runuser") and "-c" in args[:-1]:
        _nested(args[args.index("-c") + 1], state)
    else:
        _program(name, rest, state)


def _program(name: str, rest: Sequence[str], state: Walk) -> None:
    args = rest[1:]
    if _BUILDERS.fullmatch(name):
        state.built = True
    elif name in _PYTEST:
        _tests(args, state)
    elif name in _LAUNCHERS:
        started = next((index for index, arg in enumerate(args) if arg in _PYTEST), None)
        if started is not None:
            _tests(args[started + 1 :], state)
    elif _INTERPRETER.fullmatch(name):
        _interpreted(name, args, state)
    elif "/" in rest[0]:
        _run("runs", rest[0], state)


def _outputs(name: str, args: Sequence[str], plain: Sequence[str], state: Walk) -> None:
    """Note what a command writes."""
    for flag, value in pairwise(args):
        if flag in _OUTPUT_FLAGS:
            _filled(value, state)
    if name in _COPIERS and len(plain) > 1:
        _copied(plain[:-1], plain[-1], state)
    elif name in ("tee", "touch"):
        for path in plain:
            _wrote(path, state)
    elif name in ("unzip", "tar", "patch"):
        _filled(".", state)
    elif name == "git":
        _git_outputs(plain, state)
    elif name in ("uv", "virtualenv") or "venv" in plain:
        if "venv" in plain or name == "virtualenv":
            _filled(plain[-1] if plain[-1:] != ["venv"] else ".venv", state)
    elif name in ("curl", "wget"):
        state.installed = True


def _copied(sources: Sequence[str], target: str, state: Walk) -> None:
    if UNKNOWN in target or any(_is_many(one) for one in sources):
        _filled(target, state)
    else:
        _wrote(target, state)
    for source in sources:
        _wrote(posixpath.join(target, posixpath.basename(source)), state)


def _git_outputs(plain: Sequence[str], state: Walk) -> None:
    match plain:
        case ["apply" | "checkout" | "restore" | "reset" | "stash" | "am", *_]:
            _filled(".", state)
        case ["clone", source]:
            _filled(posixpath.basename(source).removesuffix(".git"), state)
        case ["clone", _, target, *_]:
            _filled(target, state)


def _is_many(source: str) -> bool:
    """Whether a copied path is, or may be, more than one file."""
    return UNKNOWN in source or source.endswith(("/", "*", "/.")) or "." not in posixpath.basename(source)


def _nested(text: str, state: Walk) -> None:
    """Follow commands that another shell is given as a text; its working directory ends with it."""
    script = parse_shell(text) if UNKNOWN not in text and state.nesting < _MAX_NESTING else None
    if script is not None:
        folder = state.folder
        state.nesting += 1
        _follow(script, state)
        state.nesting -= 1
        state.folder = folder


def _interpreted(name: str, args: Sequence[str], state: Walk) -> None:
    rest = list(args)
    shell = _SHELL.fullmatch(name) is not None
    with_value = _PYTHON_VALUE_OPTIONS if _PYTHON.fullmatch(name) else _VALUE_OPTIONS
    while rest and rest[0].startswith(("-", "+")):
        option = rest.pop(0)
        if option == "-m":
            if rest[:1] == ["pytest"]:
                _tests(rest[1:], state)
            return
        short = not option.startswith("--")
        if shell and short and option.endswith("c"):
            if rest:
                _nested(rest[0], state)
            return
        if option == "-" or (not shell and short and option[-1:] in "ce"):
            return
        if option in with_value and rest:
            rest.pop(0)
    if rest:
        _run("runs", rest[0], state)


def _tests(args: Sequence[str], state: Walk) -> None:
    """Note each test file or folder that pytest is given; its working directory where it is given none."""
    if _ASKS_ONLY & set(args):
        return
    paths = [arg.split("::")[0] for arg in args if not arg.startswith("-")]
    given = [path for path in paths if path.endswith(".py") or path.rstrip("/").endswith("tests") or path == "."]
    unsure = any(UNKNOWN in path or "/" in path for path in paths)
    for path in given or ([] if unsure else ["."]):
        _run("tests", path, state)


def _run(how: Literal["sources", "runs", "tests"], path: str, state: Walk) -> None:
    place = placed(path, state.folder)
    if place == UNKNOWN:
        return
    made = state.made(place)
    if how == "runs" and state.built:
        made = made or "." not in posixpath.basename(place) or _BUILT.search(place) is not None
    elif how == "sources":
        made = made or state.installed
    state.runs.append(Run(how, place, state.line, made, state.words, state.folder))
