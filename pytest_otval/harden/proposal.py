"""What is proposed for a task: its scripts as they should be, and the file that names its verifier's runtime."""

from __future__ import annotations

import difflib
import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pytest_otval.checks.context import MAX_TEXT, CheckContext, Source
from pytest_otval.checks.fixes import NotFixedError, create_file, make_change
from pytest_otval.checks.registry import Change
from pytest_otval.checks.scripts import is_shell
from pytest_otval.checks.verify_scripts import verifier_scripts
from pytest_otval.core import Conclusion
from pytest_otval.harden.facts import NOTHING, Contents, Facts
from pytest_otval.harden.script import Given, NotUnderstoodError, hardened
from pytest_otval.runtimes.record import VERIFIER_JSON, Reference, read_reference
from pytest_otval.runtimes.script import asking_of_verifier
from pytest_otval.task.load import Step, Task

_SHEBANG = re.compile(rb"\A#![^\r\n]*\b(?:bash|sh)\b[^\r\n]*")


@dataclass(frozen=True, slots=True)
class NewText:
    """One file as it is and as it should be."""

    path: str
    """In the task."""
    before: bytes | None
    """None where there is no such file yet."""
    after: bytes

    def diff(self, folder: str) -> Iterator[bytes]:
        """Yield the lines of a diff that ``patch -p1`` takes; ``folder`` is the task's, as the user calls it."""
        shown = posixpath.join(folder, self.path).lstrip("/").encode("utf-8", "surrogateescape")
        old = b"/dev/null" if self.before is None else b"a/" + shown
        before, after = _lines(self.before or b""), _lines(self.after)
        for line in difflib.diff_bytes(difflib.unified_diff, before, after, old, b"b/" + shown):
            yield line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"


def _lines(content: bytes) -> list[bytes]:
    """Return lines as ``diff`` knows them: ``splitlines`` splits at a carriage return, too."""
    return re.findall(rb"[^\n]*\n|[^\n]+\Z", content)


@dataclass(slots=True)
class Proposal:
    """Of one task."""

    texts: list[NewText] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What stays as it is, and why; each with the script's path."""

    def write(self, task: Path) -> None:
        """Make the changes, each file whole or not at all. Raises NotFixedError, naming the file."""
        for text in self.texts:
            try:
                if text.before is None:
                    create_file(task, text.path, text.after)
                else:
                    make_change(task, Change(text.path, text.after), MAX_TEXT, expected=text.before)
            except NotFixedError as error:
                raise NotFixedError(f"{text.path}: {error}") from None


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user wants of all tasks."""

    runtime: Reference | None
    """The verifier's runtime for tasks that name none; None where it is not in the cache."""
    may_have_runtime: bool = True
    """Whether tests may run in another Python than the image's."""
    own_shell: bool = False
    """Let the runtime's bash run the test script."""
    name: str = "python-verifier"
    """The name of a runtime that has pytest."""
    missing: str = ""
    """What to say of a task that needs the runtime where there is none."""
    contents: Contents = NOTHING
    """What the runtime has."""


def propose(task: Task, wishes: Wishes) -> Proposal:
    """Return what is proposed for a task; nothing in its files makes it raise."""
    proposal = Proposal()
    if task.config is None:
        proposal.notes.append("task.toml cannot be read")
        return proposal
    context = CheckContext(task)
    if context.windows:
        proposal.notes.append("a task for Windows")
        return proposal
    done: set[str] = set()
    for step in task.steps:
        if step.verifier_mode != "shared":
            proposal.notes.append(f"{step.name or 'its verifier'}: is separate, out of the agent's reach")
            continue
        for source in _scripts(context, step):
            if source.path not in done:
                done.add(source.path)
                _script(proposal, Facts(context, step, wishes.contents), source, wishes)
    return proposal


def _scripts(context: CheckContext, step: Step) -> Iterator[Source]:
    """Yield the test script and those that it names, where they are shell."""
    paths = [script.path for script in verifier_scripts(context) if script.step == step]
    for path in dict.fromkeys([context.test_script(step), *paths]):
        source = context.source(path)
        if source is not None and source.whole and not source.is_binary and is_shell(source):
            yield source


def _script(proposal: Proposal, facts: Facts, source: Source, wishes: Wishes) -> None:
    notes: list[str] = []
    try:
        own = _runtime_of(facts.step)
        found = hardened(source.raw, facts, _given(own, wishes, notes))
    except (NotUnderstoodError, Conclusion) as error:
        proposal.notes += [f"{source.path}: {note}" for note in (*notes, error)]
        return
    if found is None:
        return
    content, new = found.content, []
    if found.needs_runtime and own is None:
        if wishes.runtime is None:
            proposal.notes.append(f"{source.path}: {wishes.missing}")
            return
        json_path = posixpath.join(_test_folder(facts, source), VERIFIER_JSON)
        if all(text.path != json_path for text in proposal.texts):
            new.append(NewText(json_path, None, _json(wishes.runtime)))
    if wishes.own_shell and found.needs_runtime:
        runtime = own or wishes.runtime
        if isinstance(runtime, Reference):
            content = _SHEBANG.sub(f"#!{runtime.path}/bin/bash".encode(), content)
        else:
            notes.append(
                f"its first line stays: no {VERIFIER_JSON} names {runtime}, which a script may have to install"
            )
    if content != source.raw:
        proposal.texts.append(NewText(source.path, source.raw, content))
    proposal.texts += new
    proposal.notes += [f"{source.path}: {note}" for note in (*notes, *found.notes)]


def _test_folder(facts: Facts, source: Source) -> str:
    """Return the folder that lies at /tests and has a script: there a runtime's file is looked for."""
    folders = facts.context.test_folders(facts.step)
    return next((folder for folder in folders if source.path.startswith(f"{folder}/")), folders[0])


def _runtime_of(step: Step) -> Reference | str | None:
    """Return what names the runtime of a step's verifier, or the name that a script asks for; None without any.

    Raises Conclusion ``bad-task``.
    """
    folders = filter(None, (step.tests, step.shared_tests))
    named = next(filter(None, (read_reference(folder / VERIFIER_JSON) for folder in folders)), None)
    asking = asking_of_verifier(step)
    return named or (asking.name if asking is not None else None)


def _given(own: Reference | str | None, wishes: Wishes, notes: list[str]) -> Given:
    """Return what OT_PYTHON may be for a task whose own runtime is ``own``; note where that may have no pytest."""
    name = own.name if isinstance(own, Reference) else own
    if name not in (None, wishes.name):
        if wishes.may_have_runtime:
            notes.append(f"its runtime {name} may have no pytest: give --runtime {name} if it has")
        return "unknown"
    return "runtime" if wishes.may_have_runtime else "image"


def _json(reference: Reference) -> bytes:
    return (json.dumps(reference.as_dict(), indent=1) + "\n").encode()
