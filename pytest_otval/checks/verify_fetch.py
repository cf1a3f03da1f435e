"""Which commands ask another machine for something, and which of them take whatever is newest there."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from ipaddress import ip_address

from pytest_otval.checks.shell_commands import unwrapped

_URL = re.compile(r"\b(?:https?|ftp|git|ssh)://(?:[^\s/\"'@]*@)?(\[[^\]]*\]|[^\s/\"':?#]+)|(?<![\w.])git@([^\s:/@]+):")
_LOCAL_NAMES = (".localhost", ".local", ".internal", ".test", ".invalid", ".lan", ".docker")
_PIP = re.compile(r"pip[\d.]*")
_OFFLINE = frozenset(
    ("--no-index", "--offline", "--dry-run", "--prefer-offline", "--help", "--version", "--no-download", "--local")
)
_INSTALL_VERBS = {
    "npm": ("install", "i", "ci", "add"),
    "pnpm": ("install", "i", "add", "dlx"),
    "yarn": ("install", "add", "dlx"),
    "bun": ("install", "add"),
    "cargo": ("install", "fetch", "update", "add"),
    "go": ("install", "get"),
    "gem": ("install",),
    "apt": ("install", "update", "upgrade"),
    "apt-get": ("install", "update", "upgrade", "dist-upgrade"),
    "apk": ("add", "update", "upgrade"),
    "yum": ("install", "update"),
    "dnf": ("install", "update"),
    "conda": ("install", "create", "update"),
    "mamba": ("install", "create", "update"),
    "micromamba": ("install", "create", "update"),
    "cpan": ("install",),
    "cpanm": (),
    "composer": ("install", "require", "update"),
    "git": ("clone", "fetch", "pull"),
    "mvn": ("dependency:get", "dependency:go-offline", "dependency:resolve"),
}
_PIP_VALUES = frozenset(
    (
        *("-t", "--target", "-f", "--find-links", "--prefix", "--python", "-p", "--log", "--root", "-i", "--index-url"),
        *("--extra-index-url", "-c", "--constraint", "--platform", "--python-version", "--cache-dir", "--src"),
        *("--trusted-host", "--timeout", "--retries", "--progress-bar"),
    )
)
_UV_VALUES = frozenset(("-p", "--python", "--index-url", "--directory", "--project", "--index", "--cache-dir"))
_ALONE = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[\w,.-]*\])?")
"""A package's name without a version."""


def remote(text: str) -> bool:
    """Whether a text holds the address of another machine; names without a dot are services of the task."""
    return any(_is_remote_host(host or other) for host, other in _URL.findall(text))


def _is_remote_host(host: str) -> bool:
    name = host.strip("[]").rstrip(".").lower()
    try:
        return ip_address(name).is_global
    except ValueError:
        return "." in name and not name.endswith(_LOCAL_NAMES) and not re.search(r"[\0{}$%<>]", name)


def fetches(words: Sequence[str]) -> bool:
    """Whether a command asks for something on another machine, wherever it finds what is installed lacking.

    Build tools that fetch only what is missing (``mvn test``, ``cargo build``, ``npx jest``) do not count.
    """
    if not words or _OFFLINE & set(words):
        return False
    if list(words[:2]) == ["uv", "run"]:
        return any(word.split("=")[0] in ("--with", "--with-requirements") for word in words)
    name, args = _tool(words)
    if name in ("curl", "wget"):
        return any(remote(arg) for arg in args)
    if _PIP.fullmatch(name) or name == "pipx":
        return _pip_fetches(args)
    if name == "uvx" or (name == "uv" and args[:1] and args[0] in ("tool", "sync", "add", "python")):
        return args[:2] != ["tool", "list"]
    if name in ("npx", "bunx"):
        return bool({"-y", "--yes"} & set(args)) or "@" in _first(args)[1:]
    if name in ("gradle", "gradlew"):
        return "--refresh-dependencies" in args
    return _installs(name, args)


def _tool(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the program and its arguments, ``python -m pip`` and ``uv pip`` as pip."""
    rest = unwrapped(words)
    if not rest:
        return "", []
    name, args = posixpath.basename(rest[0]), rest[1:]
    if name.startswith("python") and args[:1] == ["-m"] and len(args) > 1:
        name, args = args[1], args[2:]
    if name == "uv" and args[:1] == ["pip"]:
        name, args = "pip", args[1:]
    return name, list(args)


def _first(args: Sequence[str]) -> str:
    return next((arg for arg in args if not arg.startswith("-")), "")


def _installs(name: str, args: Sequence[str]) -> bool:
    verb, *names = [arg for arg in args if not arg.startswith("-")] or [""]
    if verb not in _INSTALL_VERBS.get(name, ()) or (name == "mvn" and "-o" in args):
        return False
    if name == "git":
        return any(remote(arg) for arg in names)
    if name == "go":
        return verb == "get" or any("@" in one for one in names)
    if name == "cargo" and verb == "install":
        return "--path" not in args
    return not names or not all(_is_file(one) for one in names)


def _pip_fetches(args: Sequence[str]) -> bool:
    """Whether pip has to ask an index: for a name, not for a file or folder alone."""
    if not {"install", "download", "run", "wheel"} & set(args[:1]):
        return False
    required = any(arg in ("-r", "--requirement") or arg.startswith(("-r", "--requirement=")) for arg in args)
    return required or any(not _is_file(name) for name in _names(args[1:], _PIP_VALUES))


def _names(args: Sequence[str], with_value: frozenset[str]) -> Iterator[str]:
    """Yield the arguments that are neither options nor their values."""
    skip = False
    for arg in args:
        if skip:
            skip = False
        elif arg in with_value or arg in ("-e", "--editable", "-r", "--requirement"):
            skip = True
        elif not arg.startswith("-"):
            yield arg


def _is_file(arg: str) -> bool:
    return arg.startswith(("/", "./", "../", "file:", "\0", ".[")) or arg == "." or arg.endswith(_FILES)


_FILES = (".whl", ".tar.gz", ".zip", ".deb", ".rpm", ".apk", ".tgz", ".gem")


def shown(words: Sequence[str]) -> str:
    """Return the program of a command that fetches, with what it asks for, as far as that is known."""
    name, args = _tool(words)
    values = _PIP_VALUES if _PIP.fullmatch(name) else _UV_VALUES
    plain = [word for word in _names(args, values) if "\0" not in word]
    verbless = name in ("curl", "wget", "uvx", "npx", "bunx")
    return " ".join([name, *plain[: 1 if verbless else 2]])


def unpinned(words: Sequence[str]) -> list[str]:
    """Return the packages of which a command takes the newest version there is."""
    if not fetches(words):
        return []
    if list(words[:2]) == ["uv", "run"]:
        return [name for name in _with(words) if _ALONE.fullmatch(name)]
    name, args = _tool(words)
    if _PIP.fullmatch(name) or name == "pipx":
        return [one for one in _names(args[1:], _PIP_VALUES) if _ALONE.fullmatch(one) and not _is_file(one)]
    if name == "uvx":
        return _uvx_unpinned(args)
    if name in ("npm", "npx", "pnpm", "yarn", "bun", "go", "cargo"):
        return _script_packages(name, args)
    return []


def _with(words: Sequence[str]) -> Iterator[str]:
    """Yield the packages of each ``--with``."""
    for index, word in enumerate(words):
        if word == "--with" and index + 1 < len(words):
            yield from words[index + 1].split(",")
        elif word.startswith("--with="):
            yield from word.removeprefix("--with=").split(",")


def _uvx_unpinned(args: Sequence[str]) -> list[str]:
    packages = list(_with(args))
    pinned = {re.split(r"[=<>~!@\[]", package)[0] for package in packages if not _ALONE.fullmatch(package)}
    if "--from" in args[:-1]:
        packages.append(args[args.index("--from") + 1])
    else:
        packages.extend(list(_names(args, _UV_VALUES | {"--with"}))[:1])
    return [one for one in dict.fromkeys(packages) if _ALONE.fullmatch(one) and one not in pinned]


def _script_packages(name: str, args: Sequence[str]) -> list[str]:
    plain = [arg for arg in args if not arg.startswith("-")]
    if name == "go":
        return [one for one in plain[1:] if one.endswith("@latest")]
    if name == "cargo":
        return (
            [] if {"--version", "--locked", "--git", "--vers"} & set(args) or plain[:1] != ["install"] else plain[1:2]
        )
    packages = plain[:1] if name == "npx" else plain[1:]
    return [one for one in packages if one.endswith("@latest") or re.fullmatch(r"(?:@[\w.-]+/)?[A-Za-z][\w.-]*", one)]
