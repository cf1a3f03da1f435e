"""The Python that an image brings, and what it cannot read or import."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence

from pytest_otval.checks.python_ast import parse_python, statements

Version = tuple[int, int]

RUNNING: Version = (sys.version_info[0], sys.version_info[1])

_PYTHON_TAG = re.compile(r"(?:^|/)python:3\.(\d+)(?![\d])")
_SYSTEM: tuple[tuple[re.Pattern[str], Version], ...] = (
    (re.compile(r"(?:^|/)ubuntu[:-](?:24[.-]04|noble)"), (3, 12)),
    (re.compile(r"(?:^|/)ubuntu[:-](?:22[.-]04|jammy)"), (3, 10)),
    (re.compile(r"(?:^|/)ubuntu:(?:20\.04|focal)"), (3, 8)),
    (re.compile(r"(?:^|/)debian:(?:trixie|13)"), (3, 13)),
    (re.compile(r"(?:^|/)debian:(?:bookworm|12)"), (3, 11)),
    (re.compile(r"(?:^|/)debian:(?:bullseye|11)"), (3, 9)),
)
_OTHER_PYTHONS = re.compile(
    r"pyenv|conda|mamba|deadsnakes|\buvx?\b|python3\.\d|python-build-standalone|asdf|\bnix\b|pypy|Python-3|rye|pixi"
)
"""Ways by which another Python than the base image's may run the tests."""

_STATEMENTS: Mapping[str, type[ast.stmt]] = {
    "Pattern matching": ast.Match,
    "Exception groups": ast.TryStar,
    "Parenthesized context": ast.With,
}
"""What the parser's messages about newer statements start with."""

_NEWER = re.compile(r":=|\bmatch\b|\bexcept\s*\*|\bwith[\s\\]*\(|/(?:[\s\\]|#.*)*[,)]")
"""What a text holds that this Python reads and one from 3.7 on does not."""

_SINCE = {"tomllib": (3, 11), "zoneinfo": (3, 9), "graphlib": (3, 9)}
_UNTIL = {
    **dict.fromkeys(("asynchat", "asyncore", "imp", "smtpd"), (3, 12)),
    **dict.fromkeys(
        (
            *("aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "mailcap", "msilib", "nis", "nntplib"),
            *("ossaudiodev", "pipes", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib"),
        ),
        (3, 13),
    ),
}


def declared(base: str, texts: Sequence[str]) -> Version | None:
    """Return the Python of a base image, or None where that is not known or ``texts`` may bring another one."""
    tag = _PYTHON_TAG.search(base)
    system = next((version for pattern, version in _SYSTEM if pattern.search(base)), None)
    version = system if tag is None else (3, int(tag[1]))
    return None if version is None or any(map(_OTHER_PYTHONS.search, texts)) else version


def unreadable(text: str, version: Version) -> tuple[int | None, str] | None:
    """Return the line and message of what a version of Python cannot read, or None, also where that is not known."""
    if version > RUNNING or (parse_python(text) is not None and (version == RUNNING or not _NEWER.search(text))):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text, feature_version=max(version, (3, 7)))  # the oldest grammar that the parser knows
    except SyntaxError as error:
        return _start(text, error), error.msg
    except (ValueError, RecursionError, MemoryError):
        return None
    return None


def _start(text: str, error: SyntaxError) -> int | None:
    """Return where a statement of newer syntax starts: the parser tells where it ends."""
    kind = next((kind for words, kind in _STATEMENTS.items() if error.msg.startswith(words)), None)
    module = parse_python(text) if kind is not None else None
    if kind is None or module is None or error.lineno is None:
        return error.lineno
    ended = [one.lineno for one in statements(module.body) if isinstance(one, kind) and one.lineno <= error.lineno]
    return max(ended, default=error.lineno)


def absent_modules(module: ast.Module, version: Version) -> Iterator[tuple[int, str]]:
    """Yield the lines and names of standard modules that a file surely imports and a version does not have."""
    for node in module.body:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        for name in (one.split(".")[0] for one in names):
            if version < _SINCE.get(name, (3, 0)) or version >= _UNTIL.get(name, (9, 0)):
                yield node.lineno, name
