"""Line ends and encodings that break what reads a file."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_otval.checks.context import BOM, CheckContext, Source
from pytest_otval.checks.registry import Place, check
from pytest_otval.checks.repairs import no_byte_order_mark, unix_line_ends
from pytest_otval.core import Severity

_SCRIPT_SUFFIXES = (".sh", ".bash")


def _scripts(context: CheckContext) -> dict[str, bool]:
    """Return the shell scripts of tests, solution and set-up, and whether a trial starts each by itself."""
    started = {script.path: True for script in context.scripts()}
    folders = {context.relative(folder) for step in context.steps for folder in (step.tests, step.solution)}
    others = {
        entry.path: False
        for folder in sorted(folders | {"setup_files"})
        for entry in context.tree.under(folder)
        if entry.kind == "file" and entry.path.endswith(_SCRIPT_SUFFIXES)
    }
    return others | started


@check(
    "text-crlf",
    severity=Severity.ERROR,
    family="text",
    explains="A carriage return is part of the program's name in `#!/bin/bash\\r`: the script does not start.",
    fix="convert the line ends: sed -i 's/\\r$//' FILE",
    repair=unix_line_ends,
)
def crlf(context: CheckContext) -> Iterator[Place]:
    """Look for CRLF line ends in scripts, Dockerfiles and task.toml; an error where a shebang is hit."""
    for path, started in _scripts(context).items():
        source = context.source(path)
        line = None if source is None else _first_crlf(source)
        if source is None or line is None:
            continue
        broken = started and source.raw.startswith(b"#!") and line == 1
        message = "CRLF line ends: the shebang names no program" if broken else "CRLF line ends"
        yield Place(path, message, line, Severity.ERROR if broken else Severity.WARNING)
    for path, severity in (("environment/Dockerfile", Severity.WARNING), ("task.toml", Severity.INFO)):
        source = context.source(path)
        line = None if source is None else _first_crlf(source)
        if line is not None:
            yield Place(path, "CRLF line ends", line, severity)


def _first_crlf(source: Source) -> int | None:
    position = source.raw.find(b"\r\n")
    return None if position < 0 or source.is_binary else source.raw.count(b"\n", 0, position) + 1


@check(
    "text-bom",
    severity=Severity.WARNING,
    family="text",
    explains="Behind a byte order mark the kernel does not see `#!`: whichever shell starts the script runs it.",
    fix="remove the mark: sed -i '1s/^\\xef\\xbb\\xbf//' FILE",
    repair=no_byte_order_mark,
)
def byte_order_mark(context: CheckContext) -> Iterator[Place]:
    """Look for a byte order mark in scripts and instructions."""
    instructions = (context.relative(step.instruction) for step in context.steps)
    for path in dict.fromkeys((*_scripts(context), *instructions)):
        source = context.source(path)
        if source is not None and source.raw.startswith(BOM):
            yield Place(path, "starts with a byte order mark", 1)


@check(
    "text-encoding",
    severity=Severity.ERROR,
    family="text",
    explains="Harbor reads the instruction as UTF-8 and refuses the task where it is not.",
    fix="convert the file to UTF-8: iconv -f ENCODING -t UTF-8",
)
def encoding(context: CheckContext) -> Iterator[Place]:
    """Look for instructions, and scripts (a warning), that are not UTF-8 text."""
    for step in context.steps:
        path = context.relative(step.instruction)
        source = context.source(path)
        if source is not None and not source.is_utf8:
            yield Place(path, "not UTF-8", _bad_line(source))
    for script in context.scripts():
        source = context.source(script.path)
        if source is not None and not source.is_binary and not source.is_utf8:
            yield Place(script.path, "not UTF-8", _bad_line(source), Severity.WARNING)


def _bad_line(source: Source) -> int:
    try:
        source.raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return source.raw.count(b"\n", 0, error.start) + 1
    return 1
