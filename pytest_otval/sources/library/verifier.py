"""Patches that take the verifier out of the agent's reach, and off the network; see docs/hardening.md."""

from __future__ import annotations

import json
import posixpath
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.shell_commands import unwrapped
from pytest_otval.checks.verify_scripts import VerifierScript, verifier_scripts
from pytest_otval.checks.verify_walk import Run
from pytest_otval.harden.facts import Contents, Facts, modules_of
from pytest_otval.harden.preparing import without_alternatives
from pytest_otval.harden.proposal import Proposal, Wishes, propose
from pytest_otval.harden.tree import PLAIN, Command, Word
from pytest_otval.runtimes.record import VERIFIER_JSON, Reference, records
from pytest_otval.sources.editor import PatchError, TaskEditor
from pytest_otval.sources.library.needs import findings
from pytest_otval.sources.patches import Patch
from pytest_otval.sources.scripts import ScriptEdit, readable
from pytest_otval.workspace import Workspace


def wishes_for(runtime: str) -> Wishes:
    """Return the wish that tests run in the newest runtime of a name in the cache. Raises OtvalUsageError."""
    cache = Workspace.from_environment().runtimes
    return _wishes(runtime, cache, tuple(sorted(path.name for path in cache.glob("*.json"))))


@lru_cache(maxsize=8)
def _wishes(runtime: str, cache: Path, manifests: tuple[str, ...]) -> Wishes:
    """Read the manifests of a cache once: each is named by the checksum of what it tells of."""
    newest = next((one for one in records(cache) if one.name == runtime and one.python), None)
    missing = f"{runtime} is not in the cache: python -m pytest_otval runtime build {runtime}"
    if newest is None:
        return Wishes(None, name=runtime, missing=missing)
    return Wishes(Reference.of(newest), name=runtime, missing=missing, contents=Contents.of(newest))


def hardened_tests(runtime: str = "python-verifier") -> Patch:
    """Test scripts that run Python from the verifier's runtime and restore control files."""

    def proposal(task: TaskEditor) -> Proposal:
        wishes = wishes_for(runtime)
        found = propose(task.task, wishes)
        if wishes.runtime is None and not found.texts and any(wishes.missing in note for note in found.notes):
            raise PatchError(wishes.missing)
        return found

    def change(task: TaskEditor) -> None:
        _write(task, proposal(task))

    return Patch(
        "hardened-tests",
        "ver-pytest-isolation",
        change,
        lambda task: bool(proposal(task).texts),
        inputs=lambda: str(wishes_for(runtime).runtime),
    )


def installs_in_runtime(runtime: str = "python-verifier") -> Patch:
    """What test scripts install while they run comes from a runtime: the lines that fetch it are taken out.

    Tests then run with ``$OT_PYTHON`` alone. Refused where the runtime lacks what they import, or they fetch more.
    """

    def fetching(task: TaskEditor) -> list[str]:
        return sorted({one.path for one in findings(task, "network-at-verify") if one.path.endswith(".sh")})

    def change(task: TaskEditor) -> None:
        paths = fetching(task)
        proposal = propose(task.task, wishes_for(runtime))
        if not proposal.texts:
            why = next(iter(proposal.notes), "no pytest is started that could run in a runtime")
            raise PatchError(why)
        _write(task, proposal)
        for path in paths:
            script = ScriptEdit(task, path)
            without_alternatives(script.root, script.source, script.edits)
            script.save()
        left = next((one for one in findings(task, "network-at-verify") if one.path in paths), None)
        if left is not None:
            because = "".join(f" ({note})" for note in proposal.notes[:1])
            raise PatchError(f"{left.path}:{left.line}: {left.message}{because}")

    return Patch(
        "installs-in-runtime",
        "network-at-verify",
        change,
        lambda task: bool(fetching(task)),
        inputs=lambda: str(wishes_for(runtime).runtime),
    )


def _write(task: TaskEditor, proposal: Proposal) -> None:
    for text in proposal.texts:
        task.write(text.path, text.after)


def isolated_graders(runtime: str = "python-verifier") -> Patch:
    """Graders of /tests that a script starts by ``python3`` run in the verifier's runtime, by ``-I``.

    Only those that import Python's own modules and what the runtime has: ``-I`` lets nothing else be found.
    """

    def bare(task: TaskEditor) -> Iterator[tuple[ScriptEdit, Word, str]]:
        contents = wishes_for(runtime).contents
        context = CheckContext(task.task)
        for one in verifier_scripts(context):
            facts = Facts(context, one.step, contents)
            script = readable(task, one.path) if one.step.verifier_mode == "shared" else None
            for command in () if script is None else script.commands:
                if script is not None and (word := _bare_python(command, facts)) is not None:
                    yield script, word, posixpath.dirname(one.path)

    def change(task: TaskEditor) -> None:
        reference = wishes_for(runtime).runtime
        if reference is None:
            raise PatchError(wishes_for(runtime).missing)
        scripts: dict[str, ScriptEdit] = {}
        for script, word, folder in bare(task):
            edited = scripts.setdefault(script.path, script)
            edited.edits.replace(word.start, word.end, f'"${{OT_PYTHON:-{word.text}}}" -I')
            if not task.has(f"{folder}/{VERIFIER_JSON}"):
                task.write(f"{folder}/{VERIFIER_JSON}", f"{json.dumps(reference.as_dict(), indent=1)}\n")
        for script in scripts.values():
            script.save()

    return Patch(
        "isolated-graders",
        "ver-python-on-path",
        change,
        lambda task: any(bare(task)),
        inputs=lambda: str(wishes_for(runtime).runtime),
    )


_PYTHON = re.compile(r"python3?")


def _bare_python(command: Command, facts: Facts) -> Word | None:
    """Return the word that starts a grader of /tests in whatever Python is first on PATH; None where none does."""
    rest = unwrapped(command.texts)
    at = len(command.texts) - len(rest)
    path = next((text for text in rest[1:] if not text.startswith("-")), "")
    options = rest[1 : rest.index(path)] if path else []
    name = path.removeprefix("/tests/")
    if not (rest and _PYTHON.fullmatch(rest[0]) and path.startswith("/tests/") and name in facts.tests):
        return None
    text = facts.tests[name].text
    alone = not (modules_of(text) - sys.stdlib_module_names - facts.runtime.modules) and "sys.executable" not in text
    return command.words[at] if alone and set(options) <= {"-u", "-B"} else None


def judges_restored() -> Patch:
    """Graders and tests that a script runs in the agent's folders are copied from /tests first, where that has them."""

    def change(task: TaskEditor) -> None:
        lost = {(one.path, one.line) for one in findings(task, "ver-runs-outside-tests")}
        for one in verifier_scripts(CheckContext(task.task)):
            if not any(path == one.path for path, _ in lost):
                continue
            script = ScriptEdit(task, one.path)
            for run, command, name in _shipped(task, one, script):
                if (one.path, run.line) in lost:
                    script.before(command, f"cp /tests/{name} {run.path}")
            if script.edits.made:
                script.save()

    def needed(task: TaskEditor) -> bool:
        lost = {(one.path, one.line) for one in findings(task, "ver-runs-outside-tests")}
        scripts = [
            one for one in verifier_scripts(CheckContext(task.task)) if any(path == one.path for path, _ in lost)
        ]
        editable = ((one, readable(task, one.path)) for one in scripts)
        shipped = ((one, run) for one, script in editable if script for run, _, _ in _shipped(task, one, script))
        return any((one.path, run.line) in lost for one, run in shipped)

    return Patch("judges-restored", "ver-runs-outside-tests", change, needed)


def _shipped(task: TaskEditor, one: VerifierScript, script: ScriptEdit) -> Iterator[tuple[Run, Command, str]]:
    """Yield what a script runs elsewhere that tests/ has under the same name, and under no other."""
    facts = Facts(CheckContext(task.task), one.step)
    done = one.done()
    by_line = {command.line: command for command in reversed(script.commands)}
    for run in done.runs if done is not None else ():
        name = facts.file_of(run.path) if "." in posixpath.basename(run.path) else None
        plain = run.path.startswith("/") and not run.path.startswith("/tests/") and PLAIN.fullmatch(run.path)
        if name is not None and plain and not run.made and PLAIN.fullmatch(name) and run.line in by_line:
            yield run, by_line[run.line], name
