"""What reference solutions run: what cannot work or waits for ever, what hits too much, and what proves nothing."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from itertools import islice

from pytest_otval.checks import shell_ast as ast
from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.registry import Place, check
from pytest_otval.checks.said import instructions
from pytest_otval.checks.shell import known_text
from pytest_otval.checks.shell_commands import unwrapped
from pytest_otval.checks.solution import solutions
from pytest_otval.checks.verify_fetch import fetches, shown
from pytest_otval.core import Severity

_MAX_TOLD = 10
_MAX_LINE = 1000


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _surely_run(node: ast.Node) -> Iterator[ast.Simple]:
    """Yield the commands that run whatever happens before, and whose failure nobody bears."""
    match node:
        case ast.Simple():
            yield node
        case ast.Sequence(body=body) | ast.Pipeline(body=body):
            for one in body:
                yield from _surely_run(one)
        case ast.AndOr(left=left, right=right, operator="&&"):
            yield from _surely_run(left)
            yield from _surely_run(right)
        case ast.Group(body=inner):
            yield from _surely_run(inner)


def _words(simple: ast.Simple) -> list[str]:
    return [known_text(word) for word in simple.words]


_SURELY_FETCHING = _names("curl wget git uvx")
"""Programs that cannot do without the network; package managers may find all that is asked for installed."""


@check(
    "solution-network",
    severity=Severity.INFO,
    family="solution",
    explains="What a solution fetches while it runs can change or vanish; without a network nothing can be fetched.",
    fix="install it in the Dockerfile, or ship it in solution/",
)
def network(context: CheckContext) -> Iterator[Place]:
    """Look for downloads in solve.sh: an error where the agent has no network and nothing bears the failure."""
    for solution in solutions(context):
        script = solution.parsed
        fetching = [one for one in script.commands if fetches((one.name, *one.args))] if script is not None else []
        if script is None or not fetching:
            continue
        told, severity = (fetching[0].line, (fetching[0].name, *fetching[0].args)), Severity.INFO
        if solution.script.step.agent_network == "no-network":
            surely = [(one.line, tuple(_words(one))) for one in _surely_run(script.body) if _surely_fetches(one)]
            told, severity = (surely[0], Severity.ERROR) if surely else (told, Severity.WARNING)
        offline = "" if severity is Severity.INFO else ", and the agent has no network"
        yield Place(solution.source.path, f"fetches: {shown(told[1])}{offline}", told[0], severity)


def _surely_fetches(simple: ast.Simple) -> bool:
    words = _words(simple)
    rest = unwrapped(words)
    return bool(rest) and posixpath.basename(rest[0]) in _SURELY_FETCHING and fetches(words)


_ASKING = _names("vi vim nano emacs less more top htop man passwd visudo mc joe pico")
_APT_QUIET = re.compile(r"-\w*[yqs]\w*|--yes|--assume-yes|--simulate|--dry-run|--download-only|--no-install.*y")
_BATCH = re.compile(r"-(?:es|Es|s|c|b|batch|Q|-batch|-noninteractive|d|n\d*)|--batch|\+.*")


@check(
    "solution-interactive",
    severity=Severity.WARNING,
    family="solution",
    explains="Nobody answers a prompt: the program fails, or waits until the time is over.",
    fix="use the program's batch mode: sed instead of an editor, `apt-get install -y`",
)
def interactive(context: CheckContext) -> Iterator[Place]:
    """Look for editors, pagers and package installations that wait for an answer."""
    for solution in solutions(context):
        script = solution.parsed
        lines = solution.source.text.split("\n")
        commands = ((simple, unwrapped(_words(simple))) for simple in _surely_run(script.body)) if script else ()
        asking = (one for one in commands if one[1] and one[0].stdin is None and _asks(one[1]))
        for simple, words in islice(asking, _MAX_TOLD):
            if not re.search(r"[<|]", lines[simple.line - 1][:_MAX_LINE]):  # else nobody has to answer
                yield Place(solution.source.path, f"{' '.join(words[:2])} waits for an answer", simple.line)


def _asks(words: list[str]) -> bool:
    name, args = posixpath.basename(words[0]), words[1:]
    if name in ("apt-get", "apt"):
        verb = next((arg for arg in args if not arg.startswith("-")), "")
        quiet = any(_APT_QUIET.fullmatch(arg) for arg in args)
        return verb in ("install", "remove", "purge", "upgrade", "dist-upgrade") and not quiet
    return name in _ASKING and not any(_BATCH.fullmatch(arg) for arg in args)


_EVERYBODY = re.compile(
    r"(?:/usr/bin/|/bin/)?(?:python[\d.]*|bash|sh|node|java|perl|solve|solution|/solution\S*|solve\.sh|\.)"
)


@check(
    "solution-broad-kill",
    severity=Severity.WARNING,
    family="solution",
    explains="Such a pattern also hits the shell that runs the solution, and what the harness started beside it.",
    fix="kill by the id that was kept when the program was started",
)
def broad_kill(context: CheckContext) -> Iterator[Place]:
    """Look for kills of everything, or of every interpreter."""
    for solution in solutions(context):
        script = solution.parsed
        for command in script.commands if script is not None else ():
            words = unwrapped((command.name, *command.args))
            name = posixpath.basename(words[0]) if words else ""
            names = [word for word in words[1:] if not word.startswith("-")]
            every = name in ("pkill", "killall") and any(_EVERYBODY.fullmatch(one) for one in names)
            if every or name == "killall5" or (name == "kill" and words[-1] == "-1" and len(words) > 2):
                yield Place(solution.source.path, f"{' '.join(words[:4])} hits more than it should", command.line)


@check(
    "solution-background",
    severity=Severity.INFO,
    family="solution",
    explains="What a solution leaves running ends with it, before the tests, unless the task keeps its processes.",
    fix='write process_scope = "trial" under [metadata.otval], or let test.sh start the program',
)
def background(context: CheckContext) -> Iterator[Place]:
    """Look for programs put in the background that nothing in the script waits for or ends."""
    config = context.task.config
    kept = config is not None and isinstance(config.metadata.get("otval"), dict)
    if kept and config is not None and config.metadata["otval"].get("process_scope") == "trial":
        return
    for solution in solutions(context):
        script = solution.parsed
        if script is None or any(one.name in ("wait", "kill", "pkill", "trap", "fg") for one in script.commands):
            continue
        for simple in _in_background(script.body):
            yield Place(solution.source.path, f"leaves {' '.join(_words(simple)[:3])} running", simple.line)
            break


def _in_background(node: ast.Node) -> Iterator[ast.Simple]:
    if isinstance(node, ast.Background):
        yield from (one for one in ast.simple_commands(node.body) if one.words)
    for child in ast.children(node):
        yield from _in_background(child)


_IDLE = _names("true : exit set shopt cd pwd export umask sleep return")
_TELLING = _names("echo printf ls date whoami id")


@check(
    "solution-empty",
    severity=Severity.ERROR,
    family="solution",
    explains="A solution that does nothing cannot pass where doing nothing must fail.",
    fix="write the solution, or remove the file so that oracle is n/a",
)
def empty(context: CheckContext) -> Iterator[Place]:
    """Look for a solve.sh without a command that could change anything; a warning where it prints, or for a step."""
    for solution in solutions(context):
        script = solution.parsed
        if script is None:
            continue
        names = {posixpath.basename(one.name) for one in script.commands}
        changes = any(one.redirects for one in ast.simple_commands(script.body))
        if changes or names - _IDLE - _TELLING:
            continue
        sure = not names & _TELLING and not solution.script.step.name
        severity = Severity.ERROR if sure else Severity.WARNING
        yield Place(solution.source.path, "it does nothing" if sure else "it changes nothing", None, severity)


_PREPARING = _IDLE | {"mkdir", "chmod"}
_VALUE = re.compile(r"[^\n]{1,200}")


@check(
    "solution-answer-only",
    severity=Severity.INFO,
    family="solution",
    explains="A solution that prints the answer shows that the tests accept it, not that it can be found.",
    fix="let the solution work the answer out",
)
def answer_only(context: CheckContext) -> Iterator[Place]:
    """Look for solutions that only write short texts which the instruction does not hold."""
    for solution in solutions(context):
        script = solution.parsed
        if script is None:
            continue
        simple = [one for one in ast.simple_commands(script.body) if one.words]
        acting = [one for one in simple if known_text(one.words[0]) not in _PREPARING]
        written = [one for one in acting if one.redirects]
        if not written or any(_text(one) is None for one in acting if one.redirects or _words(one)[0] != "echo"):
            continue
        told = "\n".join(source.text for source in instructions(context))
        secret = next((one for one in written if (_text(one) or "").strip() not in told), None)
        if secret is not None:
            yield Place(solution.source.path, "all it does is write an answer that stands in it", secret.line)


def _text(simple: ast.Simple) -> str | None:
    """Return the one line that ``echo``, ``printf`` or ``cat <<EOF`` writes, or None for anything else."""
    name, *args = _words(simple)
    text = " ".join(arg for arg in args if not re.fullmatch(r"-[neE]+", arg)) if name in ("echo", "printf") else None
    if name == "cat" and not args and simple.stdin is not None:
        text = known_text(simple.stdin).strip()
    return text if text is not None and "\0" not in text and _VALUE.fullmatch(text.replace("\\n", "")) else None
