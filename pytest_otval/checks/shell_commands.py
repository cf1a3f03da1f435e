"""What well-known programs do when a test script calls them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from enum import Enum, auto
from functools import lru_cache


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WRAPPERS = _names("env sudo nice ionice time command nohup stdbuf timeout xvfb-run unbuffer setsid builtin chronic")
_WRAPPER_FLAGS_WITH_VALUE = frozenset(("-u", "-n", "-s", "-k", "-i", "-o", "-e", "-g", "--signal", "--kill-after"))
_RUN_PREFIXES = (
    ("uv", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("hatch", "run"),
    ("pdm", "run"),
    ("bundle", "exec"),
)

_TEST_RUNNERS = _names(
    "pytest py.test nosetests tox nox unittest jest vitest mocha ava tap jasmine karma phpunit rspec ctest bats"
    " prove busted gotestsum"
)
_BUILD_TOOLS = _names(
    "go cargo npm yarn pnpm bun deno mvn mvnw gradle gradlew make cmake dotnet mix stack cabal dune lein sbt bazel rake"
    " swift zig"
)
_TEST_VERBS = re.compile(r"(?:.*:)?(?:test|tests|check|verify|nextest|unittest|runtest|integration-test)(?:[:-].*)?")
_INTERPRETER = re.compile(r"python[\d.]*|bash|sh|dash|node|ruby|perl|php|Rscript|java|lua|pypy[\d.]*")
_TEST_PLACE = re.compile(r"(?:^|/)tests/")
_JUDGE_NAME = re.compile(r"test|check|verif|grad|judg|eval|scor|valid", re.IGNORECASE)
_HELPER_NAME = re.compile(r"set_?up|prepare|start|gen|make|install|init|seed|wait", re.IGNORECASE)

_JUDGES = re.compile(r"\bassert\b|sys\.exit|SystemExit|process\.exit|\bexit [1-9]")
"""In a program that stands in the script: what makes its status an answer."""

_ALWAYS_ZERO = _names("echo printf true : export set sleep shopt umask date declare local readonly typeset")
_FILTERS = _names("tee cat head tail sort tr sed wc uniq cut column")
"""Programs that end with 0 when all they do is read a pipe."""
_HARMLESS = _names(
    "cd pushd popd cp mv ln rm mkdir rmdir touch chmod chown cat ls head tail sort tr sed awk grep egrep fgrep cut"
    " wc uniq find xargs diff cmp which type hash ulimit wait kill pkill git curl wget apt apt-get apk yum dnf pip"
    " pip3 pipx uv npm yarn pnpm gem tar unzip gzip ps id whoami pwd uname hostname basename dirname realpath readlink"
    " mktemp read shift unset test [ false tee install source . jq file stat md5sum sha256sum service nvm sdk rustup"
    " corepack command patch base64 sync go cargo dotnet mvn gradle stack cabal mix rustc gcc javac tsc adduser"
    " useradd mount"
)


_TOOL_MODULES = (["-m", "pip"], ["-m", "venv"], ["-m", "ensurepip"], ["-m", "compileall"])


class Kind(Enum):
    """What a command means to a test script."""

    ALWAYS_ZERO = auto()
    """It ends with status 0, whatever happens."""
    RUNNER = auto()
    """It runs the tests: its status is what the reward should depend on."""
    HARMLESS = auto()
    """It may fail, and writes no reward."""
    CODE = auto()
    """It may do anything."""


def unwrapped(words: Sequence[str]) -> list[str]:
    """Return a command's words without what only starts it: ``timeout 60``, ``env A=1``, ``uv run``."""
    return list(_unwrapped(tuple(words)))


@lru_cache(maxsize=256)
def _unwrapped(words: tuple[str, ...]) -> Sequence[str]:
    """Every check that looks at a command asks."""
    rest = list(words)
    while rest:
        name = posixpath.basename(rest[0])
        if rest[:1] == ["command"] and rest[1:2] in (["-v"], ["-V"]):
            return rest
        if tuple(rest[:2]) in _RUN_PREFIXES:
            rest = rest[2:]
        elif name in _WRAPPERS:
            rest = rest[1:]
        else:
            return rest
        while rest and (rest[0].startswith("-") or "=" in rest[0] or re.fullmatch(r"[\d.]+[smhd]?", rest[0])):
            rest = rest[2:] if rest[0] in _WRAPPER_FLAGS_WITH_VALUE else rest[1:]
    return rest


def kind_of(words: Sequence[str], reads_pipe: bool = False, stdin: str = "") -> Kind:
    """Return what a command means; NUL characters in its words stand for what is not known."""
    return _kind_of(tuple(words), reads_pipe, stdin != "" and _JUDGES.search(stdin) is not None)


@lru_cache(maxsize=256)
def _kind_of(words: tuple[str, ...], reads_pipe: bool, is_given_judge: bool) -> Kind:
    rest = unwrapped(words)
    if not rest:
        return Kind.HARMLESS
    name = posixpath.basename(rest[0])
    if rest[0] in _ALWAYS_ZERO or (reads_pipe and name in _FILTERS):
        return Kind.ALWAYS_ZERO
    if is_runner(rest) or (is_given_judge and interprets_text(rest, has_stdin=True)):
        return Kind.RUNNER
    if name in _HARMLESS or (
        _INTERPRETER.fullmatch(name) and (rest[1:3] in _TOOL_MODULES or (reads_pipe and not rest[1:]))
    ):
        return Kind.HARMLESS
    return Kind.CODE


def is_runner(words: Sequence[str]) -> bool:
    """Whether an unwrapped command runs tests."""
    name, args = posixpath.basename(words[0]), words[1:]
    if name in _TEST_RUNNERS:
        return True
    if name in ("npx", "uvx", "bunx", "pnpx") or (name == "uv" and "tool" in args[:1]):
        return any(posixpath.basename(arg) in _TEST_RUNNERS for arg in args)
    if name in _BUILD_TOOLS:
        return any(_TEST_VERBS.fullmatch(arg) for arg in args if not arg.startswith("-"))
    if _INTERPRETER.fullmatch(name):
        runs_module = "-m" in args and any(arg in _TEST_RUNNERS for arg in args)
        return runs_module or _is_judge(_script_of(words))
    return _is_judge(words[0])


def _is_judge(path: str) -> bool:
    """Whether a file of /tests looks like one that judges, not one that prepares."""
    name = posixpath.basename(path)
    return bool(_TEST_PLACE.search(path) and _JUDGE_NAME.search(name)) and not _HELPER_NAME.match(name)


def _script_of(words: Sequence[str]) -> str:
    """Return the script that an interpreter is given, or the program itself."""
    if not _INTERPRETER.fullmatch(posixpath.basename(words[0])):
        return words[0]
    return "" if "-c" in words[1:] else next((arg for arg in words[1:] if not arg.startswith("-")), "")


def runs_test_file(words: Sequence[str]) -> bool:
    """Whether a command hands a file of /tests to an interpreter, or is one."""
    return _TEST_PLACE.search(_script_of(words)) is not None


def interprets_text(words: Sequence[str], has_stdin: bool) -> bool:
    """Whether a command runs a program that stands in the script itself: ``python3 - <<EOF``, ``bash -c '...'``."""
    if not _INTERPRETER.fullmatch(posixpath.basename(words[0])):
        return False
    args = words[1:]
    return "-c" in args or "-e" in args or (has_stdin and all(arg.startswith("-") for arg in args))
