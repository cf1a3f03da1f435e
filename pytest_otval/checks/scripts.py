"""Scripts: do they parse, and does the right program run them.

Nothing is executed: bash and ``ast`` only parse.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator

from pytest_otval.checks.bash_syntax import shell_error
from pytest_otval.checks.context import BOM, CheckContext, Script, Source
from pytest_otval.checks.python_ast import parse_python
from pytest_otval.checks.registry import Change, Place, check
from pytest_otval.checks.shell import ShellCommand, parse_shell
from pytest_otval.core import Finding, Severity

_SHELLS = re.compile(r"(?:^|/|\s)(?:bash|sh|dash|ash)(?:\s|$)")
_PYTHON = re.compile(r"(?:^|/|\s)python[\d.]*(?:\s|$)")

# No version of Python reads these; other messages may be the older grammar's view of newer syntax.
_SURE_PYTHON_ERROR = re.compile(
    r"was never closed|unexpected indent|unindent does not match|expected an indented block"
)


def python_error(text: str) -> SyntaxError | None:
    """Return the syntax error of a Python file, or None, also where it is too deep to tell."""
    if parse_python(text) is not None:
        return None
    try:
        ast.parse(text)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError):
        return None
    return None


def is_shell(source: Source) -> bool:
    """Whether a script is run by a shell that bash -n speaks for: by its shebang, or for want of one."""
    return not source.shebang or _SHELLS.search(source.shebang) is not None


def _looks_python(text: str) -> bool:
    """Whether it parses as Python and says something that shell scripts do not."""
    return re.search(r"^(?:import|from|def|class) \w", text, re.MULTILINE) is not None and python_error(text) is None


def _readable(context: CheckContext) -> Iterator[tuple[Script, Source]]:
    for script in context.scripts():
        source = context.source(script.path)
        if source is not None and source.whole and not source.is_binary:
            yield script, source


@check(
    "scripts-shell-syntax",
    severity=Severity.ERROR,
    family="scripts",
    explains="bash stops at a syntax error, so what follows it never runs.",
    fix="correct the script: bash -n FILE shows the place",
)
def shell_syntax(context: CheckContext) -> Iterator[Place]:
    """Parse each shell script that a trial starts."""
    for script, source in _readable(context):
        if not is_shell(source) or _looks_python(source.text):
            continue
        # CRLF has a check of its own; bash would report its consequences far away from it.
        error = shell_error(source.text.replace("\r\n", "\n"))
        if error is not None:
            yield Place(script.path, f"bash cannot parse it: {error[1]}", error[0])


@check(
    "scripts-python-syntax",
    severity=Severity.WARNING,
    family="scripts",
    explains="A test file that does not compile fails whatever the agent did.",
    fix="correct the file: python -m py_compile FILE shows the place",
)
def python_syntax(context: CheckContext) -> Iterator[Place]:
    """Parse the Python test files on top of tests/; an error where no version of Python reads them."""
    for path in _python_tests(context):
        source = context.source(path)
        if source is None or not source.whole or not source.is_utf8:
            continue
        error = python_error(source.text)
        if error is not None:
            sure = _SURE_PYTHON_ERROR.search(error.msg) is not None and not _newer_fstring(source.text, error)
            severity = Severity.ERROR if sure else Severity.WARNING
            yield Place(path, f"it does not compile: {error.msg}", error.lineno, severity)


def _python_tests(context: CheckContext) -> Iterator[str]:
    seen: dict[str, None] = {}
    for step in context.steps:
        for folder in context.test_folders(step):
            for entry in context.tree.under(folder):
                name = posixpath.basename(entry.path)
                on_top = posixpath.dirname(entry.path) == folder
                if on_top and re.fullmatch(r"test_.*\.py|.*_test\.py|conftest\.py", name):
                    seen[entry.path] = None
    yield from seen


def _newer_fstring(text: str, error: SyntaxError) -> bool:
    """Whether the error may come from an f-string of Python 3.12, which may hold quotes and line ends of its own."""
    lines = text.splitlines()
    near = lines[max(0, (error.lineno or 1) - 4) : (error.lineno or 1) + 1]
    return any(re.search(r"\b[rR]?[fFtT][rR]?[\"']", line) for line in near)


_WITHOUT_BASH = re.compile(rb"^\s*FROM\s[^#\n]*(?:alpine|busybox)", re.IGNORECASE | re.MULTILINE)


def add_shebang(context: CheckContext, finding: Finding) -> Iterator[Change]:
    """Name bash where no program is named: it is what Harbor starts such a script by, where the image has it."""
    source = context.source(finding.path)
    if source is None or not source.whole or source.shebang or source.is_binary or source.raw.startswith(BOM):
        return
    dockerfile = context.source("environment/Dockerfile")
    if dockerfile is None or _WITHOUT_BASH.search(dockerfile.raw):
        return
    if not _looks_python(source.text) and shell_error(source.text) is None:
        yield Change(finding.path, b"#!/bin/bash\n" + source.raw)


@check(
    "scripts-shebang",
    severity=Severity.ERROR,
    family="scripts",
    explains="Harbor executes test.sh and solve.sh directly, so their first line says which program runs them.",
    fix="make the first line `#!/bin/bash`, or name the program that the script is written for",
    repair=add_shebang,
)
def shebang(context: CheckContext) -> Iterator[Place]:
    """Look for scripts whose first line names no program, or the wrong one."""
    for script, source in _readable(context):
        text = source.text
        if _SHELLS.search(source.shebang) or not source.shebang:
            if _looks_python(text) and shell_error(text) is not None:
                yield Place(script.path, "a shell runs it, and it is written in Python", 1)
            elif not source.shebang:
                message = "no shebang: whichever shell starts it runs it"
                yield Place(script.path, message, 1, Severity.WARNING)
        elif _PYTHON.search(source.shebang) and python_error(text) is not None and shell_error(text) is None:
            yield Place(script.path, "its shebang names Python, and it is a shell script", 1)


def set_exec_bit(context: CheckContext, finding: Finding) -> Iterator[Change]:
    """Make what a script calls executable."""
    for script, source in _readable(context):
        if script.path == finding.path:
            for command, path in _called(context, script, source):
                entry = context.file(path)
                if command.line == finding.line and entry is not None and not entry.executable:
                    yield Change(entry.path, executable=True)


@check(
    "scripts-exec-bit",
    severity=Severity.ERROR,
    family="scripts",
    explains="A file without the executable bit cannot be called directly: `Permission denied`, status 126.",
    fix="chmod +x the file, or call it with its interpreter",
    repair=set_exec_bit,
)
def exec_bit(context: CheckContext) -> Iterator[Place]:
    """Look for scripts of the task that another one calls by their path though they are not executable."""
    for script, source in _readable(context):
        if not is_shell(source) or "chmod" in source.text:
            continue
        for command, path in _called(context, script, source):
            entry = context.file(path)
            if entry is not None and not entry.executable and path != script.path:
                yield Place(script.path, f"calls {command.name}, which is not executable", command.line)


def _called(context: CheckContext, script: Script, source: Source) -> Iterator[tuple[ShellCommand, str]]:
    """Yield each command that is a file of the task, with its path in the task."""
    folders = {"/tests/": context.test_folders(script.step), "/solution/": (context.relative(script.step.solution),)}
    parsed = parse_shell(source.text)
    for command in parsed.commands if parsed else ():
        for prefix, places in folders.items():
            if command.name.startswith(prefix):
                rest = command.name.removeprefix(prefix)
                paths = (posixpath.join(place, rest) for place in places)
                path = next((path for path in paths if context.file(path) is not None), None)
                if path is not None:
                    yield command, path
