"""What a verifier believes though the agent could have written it.

In a shared sandbox the agent, being root, can change every file but those of /tests. Nothing is said of a separate
verifier, which has an image of its own, nor of an agent that is not root.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.registry import Place, check
from pytest_otval.checks.shell_commands import unwrapped
from pytest_otval.checks.verify_scripts import VerifierScript, verifier_scripts
from pytest_otval.checks.verify_walk import UNKNOWN, WORKDIR, Run, Walk, placed
from pytest_otval.core import Severity
from pytest_otval.task.load import Step

_NEVER_THE_AGENTS = ("/tests/", "/logs/", "/tmp/", "/var/tmp/", "/dev/", "/proc/", "/usr/lib/", "/usr/bin/", "/bin/")
"""Restored, ours, of the system; or in /tmp, where scripts put what they make in ways that are not followed."""
_TOOL = re.compile(r"(?:^|/)(?:node_modules|vendor|bin|sbin|\.venv|venv|site-packages)/")
_TOOL_SETUP = re.compile(
    r"/(?:activate|nvm\.sh|asdf\.sh|conda\.sh|sdkman-init\.sh|opam-init/\S+|profile|\.profile|\.bashrc|\.bash_profile"
    r"|setup\.bash|\.cargo/env|\.local/bin/env|\.ghcup/env|emsdk_env\.sh)$"
)
_JUDGE = re.compile(r"test|check|verif|grad(?:e|ing)|judg|eval|scor|valid", re.IGNORECASE)
_BUILD_WRAPPERS = ("gradlew", "mvnw", "configure")
_SOLUTION = re.compile(r"/solution(?:/[\w./*-]*)?")
_QUOTED_SOLUTION = re.compile(r"[\"'](/solution(?:/[\w./-]*)?)[\"']")
_ISOLATED = frozenset(("--noconftest", "-c", "--rootdir", "--confcutdir", "-I", "-P", "--import-mode=importlib"))


def _shared(context: CheckContext) -> Iterator[tuple[VerifierScript, Walk]]:
    """Yield the scripts that run where an agent was root, with what they do."""
    for script in verifier_scripts(context):
        step = script.step
        if step.verifier_mode == "shared" and step.agent_user in (None, 0, "0", "root"):
            done = script.done()
            if done is not None:
                yield script, done


@check(
    "ver-runs-outside-tests",
    severity=Severity.WARNING,
    family="verify_trust",
    explains="Only /tests is restored before the tests run: any other file that judges can be rewritten by the agent.",
    fix="ship the file in tests/ and run it from there, or copy it from /tests over the old one first",
)
def runs_outside(context: CheckContext) -> Iterator[Place]:
    """Look for tests, graders and sourced scripts outside /tests; a tool's own set-up script is an info."""
    told: set[tuple[str, str]] = set()
    for script, done in _shared(context):
        for run in done.runs:
            if (script.path, run.path) in told or not _is_the_agents(run):
                continue
            setup = run.how == "sources" and _TOOL_SETUP.search(run.path) is not None
            if setup or run.how == "sources" or (_judges(run) and not _delivered(context, script.step, run.path)):
                told.add((script.path, run.path))
                verb = {"sources": "sources", "runs": "runs", "tests": "runs the tests in"}[run.how]
                severity = Severity.INFO if setup else Severity.WARNING
                yield Place(script.path, f"{verb} {_shown(run.path)}, which the agent can change", run.line, severity)


def _is_the_agents(run: Run) -> bool:
    """Whether a file lies where an agent works, and was not put there by the script itself."""
    path = run.path if run.path.startswith(("/", "$")) else f"/{run.path}"
    return not (run.made or f"{path}/".startswith(_NEVER_THE_AGENTS))


def _judges(run: Run) -> bool:
    """Whether a file looks like one that judges, not like a tool or like what is judged."""
    if run.how == "tests":
        return run.path != WORKDIR
    name = posixpath.basename(run.path)
    in_tests = re.search(r"(?:^|/)tests?/", run.path) is not None
    return (in_tests or _JUDGE.search(name) is not None) and not _TOOL.search(run.path) and name not in _BUILD_WRAPPERS


def _delivered(context: CheckContext, step: Step, path: str) -> bool:
    """Whether a file is what the agent is to write: the instruction or the solution names it, and no image ships it."""
    name = posixpath.basename(path)
    shipped = any(posixpath.basename(entry.path) == name for entry in context.tree.under("environment"))
    dockerfile = context.source("environment/Dockerfile")
    if shipped or (dockerfile is not None and name in dockerfile.text):
        return False
    texts = [context.source(context.relative(step.instruction)), *context.sources(context.relative(step.solution))]
    return any(name in source.text for source in texts if source is not None)


def _shown(path: str) -> str:
    return path if path.startswith(("/", "$")) else f"./{path}"


@check(
    "ver-trusts-agent-file",
    severity=Severity.WARNING,
    family="verify_trust",
    explains="A reward or a checksum that lies in the agent's files says what the agent wants it to say.",
    fix="work the reward out in /tests, and keep what is compared with in tests/",
)
def trusts_agent_file(context: CheckContext) -> Iterator[Place]:
    """Look for rewards copied from, and checksums read from, files outside /tests."""
    for script, done in _shared(context):
        for command in script.script.commands:
            path = _believed(unwrapped((command.name, *command.args)))
            place = UNKNOWN if path is None else placed(path, UNKNOWN)
            run = Run("runs", place, command.line, done.made(place), (), UNKNOWN)
            if place != UNKNOWN and _is_the_agents(run):
                yield Place(script.path, f"believes {place}, which the agent can write", command.line)


def _believed(words: Sequence[str]) -> str | None:
    """Return the file whose content a command takes for a reward or for a list of checksums."""
    plain = [word for word in words[1:] if not word.startswith("-")]
    match posixpath.basename(words[0]) if words else "":
        case "cp" | "mv" | "install" if len(plain) == 2 and re.search(r"/reward\.(?:txt|json)$", plain[1]):
            return plain[0]
        case "md5sum" | "sha1sum" | "sha256sum" | "sha512sum" if {"-c", "--check"} & set(words):
            return plain[0] if len(plain) == 1 else None
    return None


@check(
    "ver-pytest-isolation",
    severity=Severity.INFO,
    family="verify_trust",
    explains="pytest loads conftest.py, and `python -m` loads modules, from where they work: there the agent's.",
    fix="run pytest on /tests from /tests; beside the agent's files, with --noconftest where the tests need none",
)
def pytest_isolation(context: CheckContext) -> Iterator[Place]:
    """Look for pytest on restored tests in the agent's tree, or started with `python -m` there."""
    for script, done in _shared(context):
        for run in done.runs:
            if run.how != "tests" or run.folder == UNKNOWN or _ISOLATED & {word.split("=")[0] for word in run.words}:
                continue
            beside = not run.path.startswith(_NEVER_THE_AGENTS)
            module = "-m" in run.words and not f"{run.folder}/".startswith(_NEVER_THE_AGENTS)
            if (beside and run.made) or (module and not beside and "PYTHONSAFEPATH" not in script.text):
                why = (
                    "loads conftest.py of the agent's tree" if beside else "imports modules of the agent's folder first"
                )
                yield Place(script.path, f"pytest {why}", run.line)
                break


@check(
    "ver-solution-place",
    severity=Severity.WARNING,
    family="verify_trust",
    explains="/solution holds the reference solution in oracle trials; we clear it before the tests, Harbor does not.",
    fix="have the agent deliver somewhere else, such as /app, and keep what tests compare with in tests/",
)
def solution_place(context: CheckContext) -> Iterator[Place]:
    """Look for tests of a shared sandbox that need files in /solution."""
    seen: set[str] = set()
    for script in verifier_scripts(context):
        shared = script.step.verifier_mode == "shared"
        used = [command for command in script.script.commands if command.name not in ("echo", "printf")]
        words = ((word, command.line) for command in used for word in (command.name, *command.args))
        found = next(((word, line) for word, line in words if _SOLUTION.fullmatch(word)), None)
        if shared and found is not None:
            yield Place(script.path, f"uses {found[0]}", found[1])
    for step in context.steps:
        for path, text in _python_files(context, step) if step.verifier_mode == "shared" else ():
            quoted = _QUOTED_SOLUTION.search(text) if path not in seen else None
            seen.add(path)
            if quoted is not None:
                yield Place(path, f"uses {quoted[1]}", text.count("\n", 0, quoted.start()) + 1)


def _python_files(context: CheckContext, step: Step) -> Iterator[tuple[str, str]]:
    """Yield the Python files on top of tests/."""
    for folder in context.test_folders(step):
        for entry in context.tree.under(folder):
            if entry.path.endswith(".py") and posixpath.dirname(entry.path) == folder:
                source = context.source(entry.path)
                if source is not None and source.whole and not source.is_binary:
                    yield entry.path, source.text
